"""InferenceGym: a server simulated from a table of measurements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

from .session_client import SessionClient


class InferenceAction(TypedDict):
    """The configuration for the next step.

    Keys:
        kv_budget: share of the KV memory, 0.1 to 1.
        spec_length: draft tokens.
        batch_size: largest batch, 1 to 512.
        prefill_disagg: prefill apart from decode.
        quant_tier: 0 FP16, 1 INT8, 2 INT4.
    """

    kv_budget: float
    spec_length: Literal[0, 1, 2, 4, 8]
    batch_size: int
    prefill_disagg: bool
    quant_tier: Literal[0, 1, 2]


@dataclass(frozen=True)
class InferenceObservation:
    """The twelve fields of an observation. ``docs/inferencegym.md`` describes them."""

    queue_depth: int
    mean_prompt_len: float
    arrival_rate: float
    kv_cache_occupancy: float
    ttft_p50: float
    tpot_p50: float
    slo_violation_rate: float
    gpu_memory_used_gb: float
    spec_accept_rate: float
    priority_distribution: list[float]
    timestep: int
    cost_so_far: float
    reward: float | None
    done: bool
    metadata: dict[str, Any] = field(default_factory=dict, repr=False)



class InferenceGymEnv(SessionClient[InferenceObservation]):
    """A session of ``inferencegym``.

    >>> env = InferenceGymEnv.from_url("http://localhost:7860")
    >>> observation = env.reset(task_id=1, seed=42, config={"alpha": 0.5})
    """

    ENVIRONMENT = "inferencegym"
    OBSERVATION = InferenceObservation

    def info(self) -> dict[str, Any]:
        """Schemas, tasks and the weights of the reward."""
        info: dict[str, Any] = self._http.get("info")
        return info
