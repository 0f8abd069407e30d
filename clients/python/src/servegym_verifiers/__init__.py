"""Episodes of ``llmserve`` for verifiers: ``vf-eval servegym-verifiers -m MODEL``.

The model answers with JSON: the settings, and for how many windows they are held. It is told what was seen, until the episode is done.
The reward is the grade of the episode. ``SERVEGYM_URL`` is the server; without it one is started on this machine.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Iterator

import verifiers.v1 as vf
from verifiers.v1.harnesses.null import NullHarnessConfig

from servegym.trl import ServeOperator

__all__ = ["ServeGymEpisode", "ServeGymTaskset"]

_FORM = f"Answer with nothing but a JSON object of these fields:\n\n{inspect.getdoc(ServeOperator.configure)}"


class ServeGymData(vf.TaskData):
    """An episode."""

    task_id: str
    seed: int


class ServeGymConfig(vf.TasksetConfig):
    """Episodes to play."""

    task_ids: list[str] = ["static_workload"]
    """Tasks of ``llmserve``."""
    episodes: int = 100
    """Episodes of each task."""
    first_seed: int = 0
    """Seed of the first episode of each task."""


class ServeGymTask(vf.Task[ServeGymData]):
    """An episode of a task."""


class ServeGymTaskset(vf.Taskset[ServeGymTask, ServeGymConfig]):
    """Episodes of tasks, each with a seed of its own."""

    def load(self) -> Iterator[ServeGymTask]:
        config = self.config
        for task_id in config.task_ids:
            for seed in range(config.first_seed, config.first_seed + config.episodes):
                yield ServeGymTask(ServeGymData(name=f"{task_id}-{seed}", task_id=task_id, seed=seed), config.task)


class ServeGymEnvConfig(vf.EnvConfig):
    """Who operates the server: by default the model alone, in a process of this machine."""

    operator: vf.AgentConfig = vf.AgentConfig(harness=NullHarnessConfig(id="null"), runtime=vf.SubprocessConfig())


class ServeGymEpisode(vf.Env[ServeGymEnvConfig]):
    """Plays an episode: each answer of the model configures the server, and what is seen then is the next message."""

    async def run(self, task: ServeGymTask, agents: vf.Agents) -> None:
        with await asyncio.to_thread(ServeOperator) as operator:
            told = await asyncio.to_thread(operator.reset, task.data.task_id, task.data.seed)
            async with agents.operator.interaction(task) as interaction:
                segment = await interaction.turn(f"{told}\n\n{_FORM}")
                while not segment.terminated:
                    told = await asyncio.to_thread(_configure, operator, segment.last_reply)
                    if "The episode is done." in told:
                        break
                    segment = await interaction.turn(told)
            interaction.trace.record_reward("grade", await asyncio.to_thread(operator.get_reward))


def _configure(operator: ServeOperator, reply: str) -> str:
    """What the server tells of the settings in a reply, or what is wrong with the reply."""
    try:
        return operator.configure(**json.loads(reply.strip().removeprefix("```json").strip("`")))
    except (ValueError, TypeError) as error:
        return f"Error: expected a JSON object with the fields of the first message: {error}"
