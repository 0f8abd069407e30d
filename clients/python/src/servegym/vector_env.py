"""Gymnasium's interface to many environments that step together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from .fields import read_row
from .gymnasium_env import TRAINING_SEEDS, ServedOptions, ServedSpaces

if TYPE_CHECKING:
    from typing_extensions import Unpack


class ServeGymVectorEnv(ServedSpaces, VectorEnv[np.ndarray, Any, np.ndarray]):
    """Environments of one server that are reset and stepped by one message, in binary frames of float32.

    It speaks ServeGym's vector extension, so that a step of all costs one round trip. When an episode has ended, the next
    step of its environment ignores the action and starts the next episode (``AutoresetMode.NEXT_STEP``). With the seed s
    and n environments, episode k of environment i has the seed s + k n + i.

    Args:
        num_envs: how many. Each takes a slot of the server's sessions.
        environment, url, task_id, action_space, observation_space, reset_options, token, timeout_s, truncates: as of :class:`ServeGymEnv`.

    Raises:
        WrongEnvironment: when the server has another environment than the given one at the URL.
        ServeGymError: when the server cannot be had, refuses, or has too few sessions.
        ValueError: when the server has no scales, or no features, for such observations.
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(
        self, num_envs: int = 1, environment: str | None = None, **options: Unpack[ServedOptions]
    ) -> None:
        self._open(environment, ("--max-sessions", str(max(1024, 2 * num_envs))), **options)
        self.num_envs = num_envs
        self.single_action_space = self._actions.space
        self.single_observation_space = self._observations.space
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._action_columns: np.ndarray | None = None
        self._observation_columns = np.zeros(0, dtype=np.int64)
        self._ended = np.zeros(num_envs, dtype=np.bool_)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Starts an episode in all environments.

        Args:
            seed: of the first; environment i has ``seed + i``. Without one it is drawn from the training seeds.
            options: of these episodes and those that follow, over those of the environment.

        Raises:
            ValueError: when seeds are given one by one and do not follow each other.
        """
        super().reset(seed=None if isinstance(seed, list) else seed)
        base = int(self.np_random.integers(TRAINING_SEEDS)) if seed is None else _first_of(seed, self.num_envs)
        chosen = {**self._options, **(options or {})}
        data = self._connection.request(
            "vector_reset",
            {"count": self.num_envs, "seed": base, "format": "float32", "options": chosen},
        )
        self._begin(data["observations"][0], chosen, self.num_envs)
        self._ended[:] = False
        layout = data["layout"]
        self._action_columns = np.array([layout["action"].index(field.name) for field in self._actions.fields])
        self._observation_columns = np.array([layout["observation"].index(field.name) for field in self._fields])
        rows = np.array([read_row(self._fields, each) for each in data["observations"]])
        return self._seen(rows, ~self._ended), {"seed": np.arange(base, base + self.num_envs)}

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Plays the next window of each environment, or starts the next episode where one has ended.

        Raises:
            ResetNeeded: before the first reset.
            ValueError: when an action is outside its space.
        """
        if self._action_columns is None:
            raise ResetNeeded("There are no episodes yet; call reset first")
        rows = self._actions.rows(actions, self._in_force)
        ordered = np.empty_like(rows)
        ordered[:, self._action_columns] = rows
        numbers = self._connection.request_rows(ordered)
        count = self.num_envs
        table = numbers[2 * count :].reshape(count, -1)
        done = numbers[count : 2 * count] == 1
        never = np.zeros(count, dtype=np.bool_)
        terminated, truncated = (never, done) if self._truncates else (done, never)
        fresh = self._ended
        self._in_force = np.where(fresh[:, None], self._default, rows)
        self._ended = done
        observations = self._seen(table[:, self._observation_columns], fresh)
        return observations, numbers[:count].astype(np.float64), terminated, truncated, {}

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the session, and with it all environments."""
        self._connection.close()


def _first_of(seed: int | list[int | None], count: int) -> int:
    if isinstance(seed, int):
        return seed
    first = seed[0] if seed else None
    if first is None or seed != list(range(first, first + count)):
        raise ValueError(f"Expected a seed, or {count} that follow each other, got {seed}")
    return first
