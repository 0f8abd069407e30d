"""``python -m servegym serve``: the command line of the server that the package carries, with all its commands."""

import os
import subprocess
import sys

from .connection import ServerNotStarted
from .local_server import servegym_command

try:
    command = [*servegym_command(), *sys.argv[1:]]
except ServerNotStarted as error:
    sys.exit(f"error: {error}")
if os.name == "nt":
    sys.exit(subprocess.call(command))
# In the place of this process, so that signals reach the command.
os.execvp(command[0], command)
