"""Vector environments as ServeGym's own training has them, for any learner."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv, VectorObservationWrapper, VectorWrapper
from gymnasium.vector.utils import batch_space
from gymnasium.wrappers.utils import RunningMeanStd
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from .gymnasium_env import ServeGymVectorEnv

#: Features further than this many standard deviations off their mean are clipped.
CLIP = 10.0
#: Added to variances, so that a feature that has never moved does not explode when it first does.
EPSILON = 1e-4


class Statistics:
    """Moments of the features and of the discounted returns of a training, by which both are normalized."""

    def __init__(self, features: int) -> None:
        self.features = RunningMeanStd(shape=(features,))
        self.returns = RunningMeanStd(shape=())


class Normalized(VectorWrapper):
    """Brings observations to mean 0 and deviation 1, clipped, and divides rewards by the deviation of the discounted return.

    Args:
        envs: to be normalized.
        gamma: discount of the return.
        statistics: of a training, which stay as they are. Without them, those of all steps so far.

    Attributes:
        statistics: in use.
    """

    def __init__(self, envs: VectorEnv, gamma: float, statistics: Statistics | None = None) -> None:
        super().__init__(envs)
        (size,) = self.single_observation_space.shape
        self.statistics = statistics or Statistics(size)
        self._frozen = statistics is not None
        self._gamma = gamma
        self._discounted = np.zeros(self.num_envs)
        self.single_observation_space = spaces.Box(-CLIP, CLIP, (size,), np.float32)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    def reset(self, **options: Any) -> tuple[np.ndarray, dict[str, Any]]:
        observations, infos = self.env.reset(**options)
        self._discounted[:] = 0
        return self._normalized(observations), infos

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        self._discounted = self._gamma * self._discounted + rewards
        if not self._frozen:
            self.statistics.returns.update(self._discounted)
        self._discounted[terminated | truncated] = 0
        scaled = rewards / np.sqrt(self.statistics.returns.var + EPSILON)
        return self._normalized(observations), scaled, terminated, truncated, infos

    def _normalized(self, observations: np.ndarray) -> np.ndarray:
        if not self._frozen:
            self.statistics.features.update(observations)
        mean, deviation = self.statistics.features.mean, np.sqrt(self.statistics.features.var + EPSILON)
        return np.clip((observations - mean) / deviation, -CLIP, CLIP).astype(np.float32)


class BinsInForce(VectorObservationWrapper):
    """Appends the bins of the action in force to observations, one-hot for each knob.

    A change of precision costs a reload, so a policy that changes every knob at random serves nobody and learns nothing.
    ServeGym's own training therefore adds a bonus to the logits of the bins in force, which falls from 4 to 1:
    ``logits + bonus * observations[:, -envs.in_force:]``.

    Args:
        envs: with ``action_space="bins"``.

    Attributes:
        in_force: numbers that are appended, as many as the action has logits.
        statistics: of the :class:`Normalized` environments inside.
    """

    def __init__(self, envs: VectorEnv) -> None:
        super().__init__(envs)
        self.statistics = getattr(envs, "statistics", None)
        self._sizes = self.single_action_space.nvec
        self.in_force = int(self._sizes.sum())
        size = self.single_observation_space.shape[0] + self.in_force
        self.single_observation_space = spaces.Box(-np.inf, np.inf, (size,), np.float32)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    def observations(self, observations: np.ndarray) -> np.ndarray:
        """Observations with the bins behind them."""
        bins = self.unwrapped.bins_in_force
        hot = [np.arange(size) == bins[:, [knob]] for knob, size in enumerate(self._sizes)]
        return np.concatenate([observations, *hot], 1, dtype=np.float32)


def make_vec(
    num_envs: int = 32,
    environment: str = "llmserve",
    *,
    gamma: float = 0.97,
    statistics: Statistics | None = None,
    library: Literal["gymnasium", "stable-baselines3"] = "gymnasium",
    **options: Any,
) -> Any:
    """A vector environment that PPO learns from: the setting of ServeGym's own training.

    Actions are bins. Observations are features at mean 0 and deviation 1, and behind them the bins in force, see
    :class:`BinsInForce`. Rewards are divided by the deviation of the discounted return; ``infos["episode"]["r"]`` has the
    returns as they were.

    Args:
        num_envs: how many.
        environment: ``llmserve``, ``fleet`` or ``inferencegym``.
        gamma: discount of the learner.
        statistics: ``envs.statistics`` of a training, to play what was learned.
        library: ``gymnasium`` for loops such as CleanRL's, ``stable-baselines3`` for its ``VecEnv``.
        options: of :class:`ServeGymVectorEnv`, such as ``task_id`` and ``url``.
    """
    chosen = {"action_space": "bins", "observation_space": "features", **options}
    played = RecordEpisodeStatistics(ServeGymVectorEnv(num_envs, environment, **chosen))
    envs = BinsInForce(Normalized(played, gamma, statistics))
    if library == "gymnasium":
        return envs
    from .stable_baselines3 import StableBaselinesVecEnv

    return StableBaselinesVecEnv(envs)
