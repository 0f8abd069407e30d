"""Action, observation and state of the environment, as its server publishes them under ``/schema``."""

from typing import Literal

from openenv.core.env_server.types import Action, Observation, State
from pydantic import Field


class InferenceAction(Action):
    """The configuration for the next step."""

    kv_budget: float = Field(default=1.0, ge=0.1, le=1.0, description="Share of the KV memory")
    spec_length: Literal[0, 1, 2, 4, 8] = Field(default=0, description="Draft tokens")
    batch_size: int = Field(default=32, ge=1, le=512, description="Largest batch")
    prefill_disagg: bool = Field(default=False, description="Prefill apart from decode")
    quant_tier: Literal[0, 1, 2] = Field(default=0, description="0 FP16, 1 INT8, 2 INT4")


class InferenceObservation(Observation):
    """The twelve fields of an observation. Latencies in ms, memory in GB, cost in USD."""

    queue_depth: float
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


class InferenceState(State):
    """Where the episode stands."""

    cumulative_reward: float = 0.0
    done: bool = False
    workload_phase: str | None = None
