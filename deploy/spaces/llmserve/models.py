"""Action, observation and state of the environment, as its server publishes them under ``/schema``."""

from typing import Literal

from openenv.core.env_server.types import Action, Observation, State
from pydantic import Field


class ServeAction(Action):
    """The serving configuration for the next window."""

    batch_cap: int = Field(ge=1, le=512, description="Most sequences that run at once on each GPU")
    kv_budget_fraction: float = Field(ge=0.1, le=1.0, description="Share of the free memory that the KV pool takes")
    speculation_depth: int = Field(ge=0, le=8, description="Draft tokens proposed a decode step; 0 is off")
    quantization_tier: Literal["FP16", "INT8", "INT4"] = Field(description="Precision of the weights")
    prefill_decode_split: bool = Field(description="One GPU prefills and the other decodes")
    priority_routing: bool = Field(description="Interactive requests first")


class ServeObservation(Observation):
    """What was seen in the last window, or at its end. Latencies in ms, memory in GB, cost in USD."""

    queue_depth: int
    active_requests: int
    kv_cache_occupancy: float
    mean_prompt_length: float
    p50_ttft_ms: float
    p99_ttft_ms: float
    p50_itl_ms: float
    throughput_tps: float
    slo_compliance_rate: float
    gpu_memory_used_gb: float
    estimated_cost_per_1k: float
    request_arrival_rate: float
    spec_acceptance_rate: float
    eviction_events: int
    step_index: int
    task_id: str


class ServeState(State):
    """Where the episode stands."""

    task_id: str | None = None
    total_requests_served: int = 0
    total_slo_violations: int = 0
    cumulative_reward: float = 0.0
    elapsed_simulated_time_s: float = 0.0
    workload_phase: str | None = None
    done: bool = False
