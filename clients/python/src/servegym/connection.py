"""The connections to a server: a WebSocket on which every message gets one reply, in order, and the routes beside it."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urljoin, urlsplit, urlunsplit
from urllib.request import ProxyHandler, Request, build_opener

import numpy as np
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import connect

MAX_MESSAGE_BYTES = 100 * 1024 * 1024
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class ServeGymError(RuntimeError):
    """Base of all errors of this package."""


class ConnectionLost(ServeGymError):
    """The server cannot be reached, closed the connection, or did not answer in time."""


class ServerNotStarted(ServeGymError):
    """No URL was given and no server could be started on this machine."""


class WrongEnvironment(ServeGymError):
    """The server has another environment at the address than the one that was asked for."""


class ServerError(ServeGymError):
    """The server refused what it was sent.

    Attributes:
        code: stable code of the server, such as ``VALIDATION_ERROR`` or ``NOT_RESET``; ``HTTP 404`` for a status without one.
        details: what else the server said, for instance ``errors`` with the field, what was expected and what came.
    """

    def __init__(self, message: str, code: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.details = details or {}


class CapacityError(ServerError):
    """All sessions of the server are taken. Close one, or start it with more: ``--max-sessions``."""


class Connection:
    """One session of a server.

    Args:
        url: address of the server, such as ``http://localhost:7860``.
        token: sent as ``authorization: Bearer``.
        session_id: a session to go on with. By default a new one is opened.
        timeout_s: how long a connection or a reply may take, s.

    Attributes:
        session_id: the session's id, ``None`` when the server does not name it.

    Raises:
        ConnectionLost: when the server cannot be reached.
        CapacityError: when the server has no free session.
    """

    def __init__(
        self, url: str, *, token: str | None = None, session_id: str | None = None, timeout_s: float = 60.0
    ) -> None:
        base = base_url(url)
        address = socket_url(base)
        if session_id:
            address += f"?session_id={session_id}&takeover=true"
        self._timeout_s = timeout_s
        self._open = ExitStack()
        try:
            self._socket = self._open.enter_context(
                connect(
                    address,
                    additional_headers={"authorization": f"Bearer {token}"} if token else None,
                    compression=None,
                    max_size=MAX_MESSAGE_BYTES,
                    open_timeout=timeout_s,
                    **({"proxy": None} if is_local(base) else {}),
                )
            )
        except (OSError, InvalidHandshake, TimeoutError) as error:
            raise ConnectionLost(f"Cannot connect to {address}: {error}") from error
        headers = self._socket.response.headers if self._socket.response else {}
        self.session_id: str | None = headers.get("x-session-id")
        if self.session_id is None:
            # A server that does not name the session may be about to refuse one; a question brings that out.
            self.request("state")

    def request(self, type_: str, data: dict[str, Any] | None = None) -> dict[str, Any]:
        """Sends a message and returns the ``data`` of its reply.

        Raises:
            ServerError: when the server answers with an error; the session goes on.
            ConnectionLost: when there is no reply; the connection is closed then.
        """
        message = {"type": type_} if data is None else {"type": type_, "data": data}
        reply = self._exchange(json.dumps(message, default=_plain, allow_nan=False))
        if not isinstance(reply, str):
            raise self._lose(f"The server answered {type_!r} with a binary frame")
        return self._data_of(reply)

    def request_rows(self, rows: np.ndarray) -> np.ndarray:
        """Sends a frame of float32 and returns that of the reply, flat.

        Raises:
            ServerError, ConnectionLost
        """
        reply = self._exchange(np.ascontiguousarray(rows, dtype="<f4").tobytes())
        if isinstance(reply, str):
            self._data_of(reply)
            raise self._lose("The server answered a binary frame with text")
        return np.frombuffer(reply, dtype="<f4")

    def close(self) -> None:
        """Says goodbye. The server forgets the session unless it keeps sessions."""
        try:
            self._socket.send('{"type":"close"}')
        except ConnectionClosed:
            pass
        self._open.close()

    def _exchange(self, message: str | bytes) -> str | bytes:
        try:
            self._socket.send(message)
            return self._socket.recv(timeout=self._timeout_s)
        except TimeoutError:
            # A late reply would be taken for that to the next message.
            raise self._lose(f"The server did not answer within {self._timeout_s:g} s") from None
        except ConnectionClosed as error:
            raise ConnectionLost(f"The server closed the connection: {error}") from error

    def _data_of(self, reply: str) -> dict[str, Any]:
        message = json.loads(reply)
        data = message.get("data") or {}
        if message.get("type") != "error":
            return data
        details = {"message": "The server answered with an error", "code": "ERROR", **data}
        text, code = str(details.pop("message")), str(details.pop("code"))
        raise (CapacityError if code == "CAPACITY_REACHED" else ServerError)(text, code, details)

    def _lose(self, reason: str) -> ConnectionLost:
        self._open.close()
        return ConnectionLost(reason)


def _plain(value: Any) -> Any:
    """Numbers of numpy as those of Python."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"Expected a value that JSON knows, got {type(value).__name__}")


def base_url(url: str) -> str:
    """The HTTP address under which a server's paths stand, with a slash at its end.

    Takes ``http(s)`` and ``ws(s)`` addresses, with or without a path prefix.

    Raises:
        ValueError: when it is no such address.
    """
    parts = urlsplit(url)
    scheme = {"http": "http", "ws": "http", "https": "https", "wss": "https"}.get(parts.scheme)
    if scheme is None or not parts.netloc:
        raise ValueError(f"Expected an address such as http://localhost:7860, got {url!r}")
    return urlunsplit((scheme, parts.netloc, parts.path.rstrip("/") + "/", "", ""))


def socket_url(base: str, path: str = "ws") -> str:
    """Address of a server's WebSocket, given its :func:`base_url`."""
    return "ws" + base[len("http") :] + path


def is_local(base: str) -> bool:
    """True for an address on this machine, which needs no proxy."""
    return urlsplit(base).hostname in _LOOPBACK


class HttpApi:
    """Asks a server over HTTP.

    Args:
        url: address of the server.
        token: sent as ``authorization: Bearer``.
        timeout_s: how long an answer may take, s.
    """

    def __init__(self, url: str, *, token: str | None = None, timeout_s: float = 60.0) -> None:
        self.base = base_url(url)
        self._timeout_s = timeout_s
        self._headers = {"authorization": f"Bearer {token}"} if token else {}
        self._opener = build_opener(ProxyHandler({})) if is_local(self.base) else build_opener()

    def get(self, path: str, **query: Any) -> Any:
        """The JSON of ``GET /path``.

        Raises:
            ServerError: with the code ``HTTP <status>`` or the server's own.
            ConnectionLost: when there is no answer.
        """
        given = {name: value for name, value in query.items() if value is not None}
        return self._ask(Request(self.base + path + (f"?{urlencode(given)}" if given else "")))

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """The JSON that ``POST /path`` is answered with.

        Raises:
            ServerError, ConnectionLost
        """
        headers = {"content-type": "application/json"}
        return self._ask(Request(self.base + path, json.dumps(body).encode(), headers))

    def tasks(self) -> list[dict[str, Any]]:
        """The tasks of the server; none where it does not list any."""
        try:
            return self.get("tasks").get("tasks", [])
        except ServerError:
            return []

    def require_environment(self, wanted: str) -> None:
        """Checks that the server has an environment at its address.

        Raises:
            WrongEnvironment: when it has another one there; it says where the wanted one is.
            ServeGymError: when the server does not answer, or refuses.
        """
        try:
            served = self.get("environments")["environments"]
        except ServerError as error:
            if error.details.get("status") != 404:
                raise
            raise WrongEnvironment(
                f"Expected a ServeGym server with {wanted!r} at {self.base}, and it does not list its environments. "
                f"Give the address of one, or none at all to start one on this machine."
            ) from error
        paths = {each["path"]: each["id"] for each in served}
        found = paths.get("./")
        if found == wanted:
            return
        elsewhere = next((path for path, id_ in paths.items() if id_ == wanted), None)
        advice = f"It has no {wanted!r}. Give the address of one that does, or none at all to start one on this machine"
        if elsewhere:
            advice = f"It has {wanted!r} at {urljoin(self.base, elsewhere)}"
        raise WrongEnvironment(f"Expected {wanted!r} at {self.base}, and the server has {found!r} there. {advice}.")

    def _ask(self, request: Request) -> Any:
        for name, value in self._headers.items():
            request.add_header(name, value)
        try:
            with self._opener.open(request, timeout=self._timeout_s) as answer:
                return json.load(answer)
        except HTTPError as error:
            raise _server_error(error) from None
        except (URLError, TimeoutError, ConnectionError) as error:
            reason = getattr(error, "reason", error)
            raise ConnectionLost(f"{request.full_url} was not answered: {reason}") from error


def _server_error(error: HTTPError) -> ServerError:
    text = error.read().decode(errors="replace")
    try:
        body = json.loads(text)
    except ValueError:
        body = {}
    told = body if isinstance(body, dict) else {}
    detail = told.get("detail", text[:200])
    message = detail if isinstance(detail, str) else json.dumps(detail)
    code = told.get("code") or f"HTTP {error.code}"
    return ServerError(message or str(error.reason), code, {"status": error.code, "body": body})


def masked_values(task: dict[str, Any]) -> dict[str, Any]:
    """The knobs that a task masks, by name, with the values at which they stay."""
    standard = task.get("default_action") or {}
    return {name: standard[name] for name in task.get("masked_actions") or [] if name in standard}
