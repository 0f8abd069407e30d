"""Gymnasium's interface to one environment."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from .action_encoding import ActionEncoding, Encoding
from .connection import Connection
from .fields import fields_of
from .http_api import HttpApi
from .local_server import shared_server
from .masked_knobs import masked_values, tasks_of
from .observation_encoding import ObservationEncoding
from .served_environment import require_environment

#: Seeds of the training traffic; those from 1,000,000 on are for validation and tests.
TRAINING_SEEDS = 1_000_000
#: Served on this machine when neither an environment nor a URL is given.
DEFAULT_ENVIRONMENT = "llmserve"


class ServedSpaces:
    """A session of a server, and the encodings of its actions and observations."""

    def _open(
        self,
        environment: str | None,
        url: str | None,
        task_id: str | int | None,
        encoding: Encoding,
        normalize: bool,
        reset_options: dict[str, Any] | None,
        token: str | None,
        timeout_s: float,
        server_options: tuple[str, ...] = (),
    ) -> None:
        address = url or shared_server(environment or DEFAULT_ENVIRONMENT, *server_options).url
        api = HttpApi(address, token=token, timeout_s=timeout_s)
        if url and environment:
            require_environment(api, environment)
        schema = api.get("schema")
        self._tasks = tasks_of(api)
        self._actions = ActionEncoding(fields_of(schema["action"]), encoding)
        self._observations = ObservationEncoding(
            fields_of(schema["observation"], leave_texts=True), normalize=normalize
        )
        self._options = {**({} if task_id is None else {"task_id": task_id}), **(reset_options or {})}
        self._connection = Connection(address, token=token, timeout_s=timeout_s)

    @property
    def observation_names(self) -> list[str]:
        """Name of each number of an observation."""
        return self._observations.names

    def _hold_masked(self, observation: dict[str, Any], options: dict[str, Any]) -> None:
        """Keeps the knobs that the task of an episode masks at its default."""
        played = observation.get("task_id", options.get("task_id"))
        self._actions.hold(masked_values(self._tasks, played))


class ServeGymEnv(ServedSpaces, gymnasium.Env[np.ndarray, Any]):
    """One episode after another over a WebSocket session.

    Episodes of ServeGym's own environments end by their time limit: they are truncated and never terminated, so that
    learners bootstrap from the last observation. ``info`` has what the server tells beside the observation. Knobs that the
    task masks stay at its default, whatever an action says.

    Args:
        environment: the one to play. Default ``llmserve``, or with a URL whichever the server has there.
        url: address of a running server. Without one, a server is started on this machine and shared by this process.
        task_id: the task of every reset. Default the server's first.
        encoding: of the actions, see :class:`ActionEncoding`.
        normalize: bring observations to about 0 to 1 by the server's scales, see :class:`ObservationEncoding`.
        reset_options: further options of every reset, such as ``config`` or ``traffic``.
        token: sent as ``authorization: Bearer``.
        timeout_s: how long a reply may take, s.
        truncates: whether an episode that is done has reached its time limit, as all of ServeGym's do, and has not ended.

    Raises:
        WrongEnvironment: when the server has another environment than the given one at the URL.
        ServeGymError: when the server cannot be had, or refuses.
        ValueError: when observations are to be normalized and the server has no scales for them.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        environment: str | None = None,
        *,
        url: str | None = None,
        task_id: str | int | None = None,
        encoding: Encoding = "box",
        normalize: bool = False,
        reset_options: dict[str, Any] | None = None,
        token: str | None = None,
        timeout_s: float = 60.0,
        truncates: bool = True,
        render_mode: None = None,
    ) -> None:
        self._open(environment, url, task_id, encoding, normalize, reset_options, token, timeout_s)
        self.action_space = self._actions.space
        self.observation_space = self._observations.space
        self.render_mode = render_mode
        self._truncates = truncates

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Starts an episode.

        Args:
            seed: of the traffic. Without one it is drawn from the training seeds, by the generator that the last given seed made.
            options: of this reset, over those of the environment: ``task_id``, and whatever the server takes.
        """
        super().reset(seed=seed)
        episode = int(self.np_random.integers(TRAINING_SEEDS)) if seed is None else seed
        chosen = {**self._options, **(options or {})}
        reply = self._connection.request("reset", {**chosen, "seed": episode})
        self._hold_masked(reply["observation"], chosen)
        return self._observations.array(reply["observation"]), {"seed": episode, **_info(reply)}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Plays the next window."""
        reply = self._connection.request("step", self._actions.action(action))
        done = bool(reply["done"])
        observation = self._observations.array(reply["observation"])
        reward = float(reply["reward"] or 0.0)
        return observation, reward, done and not self._truncates, done and self._truncates, _info(reply)

    def close(self) -> None:
        """Ends the session; a server that this process has started goes on until the process ends."""
        self._connection.close()


def _info(reply: dict[str, Any]) -> dict[str, Any]:
    return {**(reply.get("metadata") or {}), "observation": reply["observation"]}
