"""Addresses of a server."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

LOOPBACK = ("localhost", "127.0.0.1", "::1")


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
    return urlsplit(base).hostname in LOOPBACK
