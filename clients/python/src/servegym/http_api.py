"""The routes of a server beside a session, and its addresses."""

from __future__ import annotations

import json
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urljoin, urlsplit, urlunsplit
from urllib.request import ProxyHandler, Request, build_opener

from .errors import ConnectionLost, ServerError, WrongEnvironment

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


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
            tasks: list[dict[str, Any]] = self.get("tasks").get("tasks", [])
        except ServerError:
            return []
        return tasks

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
        advice = (
            f"It has {wanted!r} at {urljoin(self.base, elsewhere)}"
            if elsewhere
            else f"It has no {wanted!r}. Give the address of one that does, or none at all to start one on this machine"
        )
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
    detail = body.get("detail", text[:200]) if isinstance(body, dict) else text[:200]
    message = detail if isinstance(detail, str) else json.dumps(detail)
    code = body.get("code") if isinstance(body, dict) else None
    return ServerError(message or str(error.reason), code or f"HTTP {error.code}", {"status": error.code, "body": body})


def masked_values(task: dict[str, Any]) -> dict[str, Any]:
    """The knobs that a task masks, by name, with the values at which they stay."""
    standard = task.get("default_action") or {}
    return {name: standard[name] for name in task.get("masked_actions") or [] if name in standard}
