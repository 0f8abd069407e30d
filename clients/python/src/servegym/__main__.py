"""``servegym``, also as ``python -m servegym``: the command line of the server that the package carries."""

import os
import subprocess
import sys

from .connection import ServerNotStarted
from .local_server import servegym_command


def main() -> None:
    try:
        command = [*servegym_command(), *sys.argv[1:]]
    except ServerNotStarted as error:
        sys.exit(f"error: {error}")
    os.environ.setdefault("SERVEGYM_PYTHON", sys.executable)  # The Python that plays policies in Python.
    if os.name == "nt":
        sys.exit(subprocess.call(command))
    # In the place of this process, so that signals reach the command.
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
