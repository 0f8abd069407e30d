"""LLMServeEnv for TRL's ``GRPOTrainer(environment_factory=ServeOperator)``: a language model operates the server."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from .connection import masked_values
from .environments import LLMServeEnv, ServeAction, ServeObservation

#: First message of a rollout, before what :meth:`ServeOperator.reset` says.
QUESTION = "Operate the server so that its grade is as high as you can make it."
#: Longest that one configuration is held by a call of a tool, windows.
MOST_WINDOWS = 20


def prompts(task_ids: Sequence[str], episodes: int, first_seed: int = 0) -> list[dict[str, Any]]:
    """
    Rows of a dataset for ``datasets.Dataset.from_list``: a prompt, and the task and seed of its episode.

    GRPO plays each row in a group of rollouts. All of a group meet the same requests, so that their rewards differ by what
    the model did. Seeds 0 to 999,999 are those of the training split.
    """
    return [
        {"prompt": [{"role": "user", "content": QUESTION}], "task_id": task_id, "seed": seed}
        for task_id in task_ids
        for seed in range(first_seed, first_seed + episodes)
    ]


class ServeOperator:
    """An episode of ``llmserve`` that a model plays with tools.

    TRL makes one for each rollout, calls :meth:`reset` with the columns of the dataset (``task_id`` and ``seed`` are used),
    offers the model the public methods as tools, and takes :meth:`get_reward` for the rollout. ``SERVEGYM_URL`` is the
    server; without it one is started on this machine. Windows that the model does not play count against it, so a short
    rollout is no shortcut.
    """

    def __init__(self) -> None:
        url = os.environ.get("SERVEGYM_URL")
        self._env = LLMServeEnv.from_url(url) if url else LLMServeEnv.local()
        self._observation: ServeObservation | None = None

    def __enter__(self) -> ServeOperator:
        return self

    def __exit__(self, *_error: object) -> None:
        """Ends the session. No public method: TRL would offer it to the model."""
        self._env.close()

    def reset(self, task_id: str | None = None, seed: int | None = None, **_columns: Any) -> str:
        """Starts an episode and says what is to be done."""
        self._observation = self._env.reset(task_id=task_id, seed=seed)
        task = next(each for each in self._env.tasks() if each["id"] == self._observation.task_id)
        masked = masked_values(task)
        held = f"It masks knobs, which must stay as they are: {json.dumps(masked)}. " if masked else ""
        return (
            f"\nYou operate an LLM inference server of two GPUs. {task['description']} The episode has {task['windows']} "
            f"windows of {task['window_seconds']} s. Configure the server with the tools until the episode is done. "
            f"{held}Reward of a window: {task['reward']} Changes: {task['changes']} The server: {json.dumps(self._observation.server)}. At first: {_told(self._observation)}"
        )

    def get_reward(self) -> float:
        """The grade of the episode, strictly between 0 and 1."""
        return float(self._env.grade()["score"])

    def configure(
        self,
        batch_cap: int,
        kv_budget_fraction: float,
        speculation_depth: int,
        quantization_tier: str,
        prefill_decode_split: bool,
        priority_routing: bool,
        windows: int = 1,
    ) -> str:
        """
        Sets the server's configuration, lets windows pass, and tells what was seen in the last of them.

        Args:
            batch_cap: Most sequences that run at once on each GPU, 1 to 512. More give throughput, fewer a lower latency per token.
            kv_budget_fraction: Share of the free memory for the KV cache, 0.1 to 1. Memory costs; too little preempts requests.
            speculation_depth: Draft tokens per decode step, 0 to 8. Helps small batches and hurts large ones.
            quantization_tier: Precision of the weights: FP16, INT8 or INT4. Lower is faster and costs quality; a change costs a reload of seconds.
            prefill_decode_split: Whether one GPU prefills and the other decodes. Steadier tokens; a change drains the GPUs.
            priority_routing: Whether interactive requests go first and the others wait.
            windows: For how many windows to hold this configuration, 1 to 20.

        Returns:
            The observation after the last window, the mean reward of these windows, and whether the episode is done.
        """
        given = dict(locals())
        if not 1 <= windows <= MOST_WINDOWS:
            return f"Error: windows must be from 1 to {MOST_WINDOWS}, got {windows}"
        action = {name: given[name] for name in ServeAction.__annotations__}
        rewards: list[float] = []
        while len(rewards) < windows and self._observation is not None and not self._observation.done:
            self._observation, reward, _, _ = self._env.step(action)
            rewards.append(reward)
        if self._observation is None or not rewards:
            return "Error: the episode is done"
        mean = sum(rewards) / len(rewards)
        return f"{_told(self._observation)} Mean reward of {len(rewards)} windows: {mean:.3f}."

    def observe(self) -> str:
        """
        Tells again what was seen in the last window; no time passes.

        Returns:
            The observation.
        """
        return _told(self._observation) if self._observation else "Error: no episode has been started"


def _told(observation: ServeObservation) -> str:
    seen = {
        name: round(value, 3) if isinstance(value, float) else value
        for name, value in vars(observation).items()
        if name not in ("metadata", "reward", "done", "server")
    }
    return f"{json.dumps(seen)}{' The episode is done.' if observation.done else ''}"
