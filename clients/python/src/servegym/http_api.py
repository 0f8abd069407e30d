"""The routes beside a session: tasks, grades, baselines."""

from __future__ import annotations

import json
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

from .address import base_url, is_local
from .errors import ConnectionLost, ServerError


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
