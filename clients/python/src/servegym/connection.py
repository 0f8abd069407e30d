"""A WebSocket on which every message gets one reply, in order."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Any

import numpy as np
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import connect

from .errors import ConnectionLost, error_of
from .http_api import base_url, is_local, socket_url

MAX_MESSAGE_BYTES = 100 * 1024 * 1024


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
        if message.get("type") == "error":
            raise error_of(data)
        return data

    def _lose(self, reason: str) -> ConnectionLost:
        self._open.close()
        return ConnectionLost(reason)


def _plain(value: Any) -> Any:
    """Numbers of numpy as those of Python."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"Expected a value that JSON knows, got {type(value).__name__}")
