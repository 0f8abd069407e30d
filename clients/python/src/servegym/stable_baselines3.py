"""Stable-Baselines3: its vector environments, and the policy of ServeGym's own training. Needs stable-baselines3."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium.vector import VectorEnv
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecEnv


class StableBaselinesVecEnv(VecEnv):
    """Gymnasium's vector environment of one task as Stable-Baselines3's ``VecEnv``.

    Episodes of a task have one length, so all end in the same step; the next ones start in it.

    Args:
        envs: of :func:`servegym.make_vec`.
        seed: of the first reset.
    """

    def __init__(self, envs: VectorEnv, seed: int = 0) -> None:
        self.envs = envs
        self._first_seed: int | None = seed
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)

    def reset(self) -> np.ndarray:
        observations, _ = self.envs.reset(seed=self._first_seed)
        self._first_seed = None
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        observations, rewards, terminated, truncated, told = self.envs.step(self._actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        dones = terminated | truncated
        if dones.any():
            if not dones.all():
                raise ValueError("Expected episodes of one length; give all environments the same task")
            returns, lengths = (told["episode"][name] for name in ("r", "l"))
            for index, info in enumerate(infos):
                info["terminal_observation"] = observations[index]
                info["TimeLimit.truncated"] = bool(truncated[index])
                info["episode"] = {"r": float(returns[index]), "l": int(lengths[index])}
            # The step after the end starts the next episodes, whatever the actions.
            observations = self.envs.step(self._actions)[0]
        return observations, rewards.astype(np.float32), dones, infos

    def close(self) -> None:
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        value = self.envs.get_wrapper_attr(attr_name) if hasattr(self.envs, "get_wrapper_attr") else None
        return [getattr(self.envs, attr_name, value)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        setattr(self.envs, attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        raise NotImplementedError("The environments share one connection and have no methods of their own")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * len(list(self._get_indices(indices)))


class _WithoutBins(BaseFeaturesExtractor):
    def __init__(self, observation_space: Any, in_force: int) -> None:
        super().__init__(observation_space, observation_space.shape[0] - in_force)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return observations[:, : self.features_dim]


class KeepBonusPolicy(ActorCriticPolicy):
    """A policy that adds ``keep_bonus`` to the logits of the bins in force, which observations end with."""

    keep_bonus = 0.0

    def __init__(self, observation_space: Any, action_space: Any, *args: Any, **kwargs: Any) -> None:
        self._in_force = int(action_space.nvec.sum())
        kwargs.update(features_extractor_class=_WithoutBins, features_extractor_kwargs={"in_force": self._in_force})
        super().__init__(observation_space, action_space, *args, **kwargs)

    def extract_features(self, obs: Any, features_extractor: Any = None) -> Any:
        self._bins = obs[:, -self._in_force :]
        return super().extract_features(obs, features_extractor)

    def get_distribution(self, obs: Any) -> Any:
        # It takes the features by another way.
        self._bins = obs[:, -self._in_force :]
        return super().get_distribution(obs)

    def _get_action_dist_from_latent(self, latent_pi: torch.Tensor) -> Any:
        logits = self.action_net(latent_pi) + self.keep_bonus * self._bins
        return self.action_dist.proba_distribution(action_logits=logits)


class KeepBonus(BaseCallback):
    """Lets the bonus of a :class:`KeepBonusPolicy` fall linearly during training.

    Args:
        start, end: bonus at the start and at the end.
    """

    def __init__(self, start: float = 4.0, end: float = 1.0) -> None:
        super().__init__()
        self._start, self._end = start, end

    def _on_rollout_start(self) -> None:
        left = self.model._current_progress_remaining
        self.model.policy.keep_bonus = self._end + (self._start - self._end) * left

    def _on_step(self) -> bool:
        return True
