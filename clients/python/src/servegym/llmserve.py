"""LLMServeEnv: an LLM inference server whose settings are chosen window by window."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

from .session_client import SessionClient


class ServeAction(TypedDict):
    """The serving configuration for the next window.

    Keys:
        batch_cap: most sequences that run at once on each GPU, 1 to 512.
        kv_budget_fraction: share of the free memory that the KV pool takes, 0.1 to 1.
        speculation_depth: draft tokens proposed a decode step, 0 to 8; 0 is off.
        quantization_tier: precision of the weights.
        prefill_decode_split: one GPU prefills and the other decodes.
        priority_routing: interactive requests first.
    """

    batch_cap: int
    kv_budget_fraction: float
    speculation_depth: int
    quantization_tier: Literal["FP16", "INT8", "INT4"]
    prefill_decode_split: bool
    priority_routing: bool


@dataclass(frozen=True)
class ServeObservation:
    """The server over the last window, or at its end. ``docs/environments.md`` describes every field."""

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
    server: dict[str, Any]
    reward: float | None
    done: bool
    metadata: dict[str, Any] = field(default_factory=dict, repr=False)



class LLMServeEnv(SessionClient[ServeObservation]):
    """A session of ``llmserve``.

    >>> env = LLMServeEnv.from_url("http://localhost:7860")
    >>> observation = env.reset(task_id="static_workload", seed=0)
    >>> while not observation.done:
    ...     observation, reward, done, info = env.step(action)
    >>> env.grade()["score"]
    """

    ENVIRONMENT = "llmserve"
    OBSERVATION = ServeObservation
