"""Base of the clients of the environments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Generic, TypeVar

from .connection import Connection, HttpApi, ServeGymError
from .local_server import shared_server

ObservationT = TypeVar("ObservationT")
ClientT = TypeVar("ClientT", bound="SessionClient[Any]")


class SessionClient(Generic[ObservationT]):
    """A session of a server, with the observations of one environment. Made by :meth:`from_url` or :meth:`local`."""

    #: As ``servegym serve --env`` names it.
    ENVIRONMENT = ""
    #: The dataclass of an observation: its own fields, ``reward``, ``done`` and ``metadata``.
    OBSERVATION: type[Any]

    def __init__(self, http: HttpApi, connection: Connection) -> None:
        self._http = http
        self._connection = connection

    @classmethod
    def from_url(
        cls: type[ClientT], url: str, *, token: str | None = None, session_id: str | None = None, timeout_s: float = 60.0
    ) -> ClientT:
        """Opens a session of a running server.

        Args:
            url: its address, such as ``http://localhost:7860`` or that of a Space.
            token: sent as ``authorization: Bearer``.
            session_id: a session to go on with, as :attr:`session_id` told it.
            timeout_s: how long a reply may take, s.

        Raises:
            ConnectionLost: when the server cannot be reached.
            WrongEnvironment: when it has another environment at this address.
            CapacityError: when it has no free session.
        """
        http = HttpApi(url, token=token, timeout_s=timeout_s)
        http.require_environment(cls.ENVIRONMENT)
        return cls(http, Connection(url, token=token, session_id=session_id, timeout_s=timeout_s))

    @classmethod
    def local(cls: type[ClientT]) -> ClientT:
        """Opens a session of a server on this machine, which is started when there is none and ends with this process.

        Raises:
            ServerNotStarted: when there is nothing to start it with.
        """
        return cls.from_url(shared_server(cls.ENVIRONMENT).url)

    @property
    def session_id(self) -> str | None:
        """By which the server knows this session; ``None`` when it does not tell."""
        return self._connection.session_id

    def reset(
        self, task_id: str | int | None = None, seed: int | None = None, **options: Any
    ) -> ObservationT:
        """Starts an episode.

        Args:
            task_id: one of :meth:`tasks`. Default the server's first.
            seed: of the traffic. Without one the server draws it and tells it in :meth:`state`.
            options: whatever else the server takes, such as ``config``.

        Raises:
            ServerError: when the server does not know the task or an option is wrong.
        """
        given = {"task_id": task_id, "seed": seed, **options}
        reply = self._connection.request("reset", {name: value for name, value in given.items() if value is not None})
        return self._observation(reply)

    def step(self, action: Mapping[str, Any]) -> tuple[ObservationT, float, bool, dict[str, Any]]:
        """Plays the next window.

        Args:
            action: its fields by name. The server refuses what is missing, unknown or out of range.

        Returns:
            Observation, reward, whether the episode is done, and what else the server tells (``info``).

        Raises:
            ServerError: when the action is refused; the episode stands where it stood.
        """
        reply = self._connection.request("step", dict(action))
        return self._observation(reply), float(reply["reward"] or 0.0), bool(reply["done"]), reply.get("metadata") or {}

    def state(self) -> dict[str, Any]:
        """The server's state of the episode: ``episode_id``, ``step_count`` and what the environment adds."""
        return self._connection.request("state")

    def grade(self) -> dict[str, Any]:
        """The grade of this session's episode, from the server's own record: ``score``, ``breakdown``, ``feedback``,
        and in ``replayed`` its task and seed.

        Raises:
            ServeGymError: when the server does not name its sessions.
        """
        if self.session_id is None:
            raise ServeGymError("The server does not name its sessions, so it cannot be asked for the grade of this one")
        return self._http.post("grader", {"session_id": self.session_id})

    def tasks(self) -> list[dict[str, Any]]:
        """The tasks of the server: ``id``, ``name``, ``difficulty``, ``description`` and more."""
        return self._http.get("tasks")["tasks"]

    def baseline(self, **query: Any) -> dict[str, Any]:
        """Scores of the server's baseline agents. Takes a while."""
        return self._http.get("baseline", **query)

    def close(self) -> None:
        """Ends the session."""
        self._connection.close()

    def __enter__(self: ClientT) -> ClientT:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _observation(self, reply: dict[str, Any]) -> ObservationT:
        known = {each.name for each in fields(self.OBSERVATION)}
        own = {name: value for name, value in reply["observation"].items() if name in known}
        beside = {"reward": reply["reward"], "done": reply["done"], "metadata": reply.get("metadata") or {}}
        return self.OBSERVATION(**own, **beside)
