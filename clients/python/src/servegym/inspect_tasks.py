"""Tasks of Inspect: a language model operates a server with the tools of :class:`servegym.trl.ServeOperator`.

``inspect eval servegym/llmserve --model openai/gpt-5-mini -T task_id=bursty_workload``. The score is the grade of the episode.
``SERVEGYM_URL`` is the server; without it one is started on this machine.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageUser
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolDef

from .trl import ServeOperator


@task
def llmserve(task_id: str = "static_workload", episodes: int = 5, first_seed: int = 0) -> Task:
    """Episodes of a task of ``llmserve``.

    Args:
        task_id: such as ``static_workload``, ``bursty_workload`` or ``adversarial_multitenant``.
        episodes: how many, each with a seed of its own.
        first_seed: seed of the first.
    """
    seeds = range(first_seed, first_seed + episodes)
    samples = [Sample(id=f"{task_id}-{seed}", input="Operate the server.", metadata={"task_id": task_id, "seed": seed}) for seed in seeds]
    return Task(dataset=samples, solver=operate(), scorer=grade())


@solver
def operate() -> Solver:
    """Plays an episode until the model makes no more calls."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        with ServeOperator() as operator:
            told = await asyncio.to_thread(operator.reset, state.metadata["task_id"], state.metadata["seed"])
            state.messages.append(ChatMessageUser(content=told))
            state.tools = [ToolDef(_asynchronous(tool)).as_tool() for tool in (operator.configure, operator.observe)]
            state = await generate(state)
            state.store.set("grade", await asyncio.to_thread(operator.get_reward))
        return state

    return solve


def _asynchronous(method: Callable[..., str]) -> Callable[..., Awaitable[str]]:
    """The method with the same signature, run in a thread."""

    @functools.wraps(method)
    async def call(*args: Any, **arguments: Any) -> str:
        return await asyncio.to_thread(method, *args, **arguments)

    return call


@scorer(metrics=[mean(), stderr()])
def grade() -> Scorer:
    """Grade of the episode, strictly between 0 and 1."""

    async def score(state: TaskState, _target: Target) -> Score:
        return Score(value=state.store.get("grade"))

    return score
