"""Errors between a client and a ServeGym server."""

from __future__ import annotations

from typing import Any


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


def error_of(data: dict[str, Any]) -> ServerError:
    """The error that an ``error`` message of the server stands for."""
    message = str(data.get("message", "The server answered with an error"))
    code = str(data.get("code", "ERROR"))
    details = {key: value for key, value in data.items() if key not in ("message", "code")}
    return (CapacityError if code == "CAPACITY_REACHED" else ServerError)(message, code, details)
