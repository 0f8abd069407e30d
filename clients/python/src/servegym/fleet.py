"""FleetEnv: a fleet of replicas behind a gateway, run window by window."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypedDict

from .session_client import SessionClient


class FleetAction(TypedDict):
    """The settings of the fleet for the next window.

    Keys:
        replicas: replicas wanted, 0 to 32.
        second_replicas: the same of the second kind, where the task has one; 0 otherwise.
        prefill_replicas: of the ready replicas, those that only prefill, 0 to 16.
        routing_queue: weight of few requests in flight, 0 to 1.
        routing_cache: weight of free KV blocks, 0 to 1.
        routing_prefix: weight of known prefixes, 0 to 1.
        admission_seconds: seconds of queue above which best effort, then batch, is refused; 600 refuses nobody.
        max_num_batched_tokens: token budget of an iteration, 512 to 16384.
        max_num_active_seqs: most sequences that run at once on a replica, 1 to 512.
    """

    replicas: int
    second_replicas: int
    prefill_replicas: int
    routing_queue: float
    routing_cache: float
    routing_prefix: float
    admission_seconds: float
    max_num_batched_tokens: int
    max_num_active_seqs: int


@dataclass(frozen=True)
class FleetObservation:
    """The fleet over the last window, or at its end. ``GET /schema`` describes every field."""

    num_requests_running: int
    num_requests_waiting: int
    kv_cache_usage_perc: float
    kv_cache_usage_most: float
    prefix_cache_hit_rate: float
    prompt_tokens_per_second: float
    generation_tokens_per_second: float
    arrived_prompt_tokens_per_second: float
    request_generation_tokens_mean: float
    request_success_per_second: float
    num_preemptions: int
    time_to_first_token_seconds_p50: float
    time_to_first_token_seconds_p99: float
    inter_token_latency_seconds_p50: float
    inter_token_latency_seconds_p99: float
    queue_seconds: float
    arrivals_last_seconds: float
    replicas_ready: int
    replicas_starting: int
    replicas_draining: int
    second_replicas_ready: int
    second_replicas_starting: int
    replicas_prefill: int
    usd_per_hour: float
    revenue_usd_per_hour: float
    hour_of_day: float
    interactive: dict[str, float]
    batch: dict[str, float]
    best_effort: dict[str, float]
    server: dict[str, Any]
    step_index: int
    task_id: str
    reward: float | None
    done: bool
    metadata: dict[str, Any] = field(default_factory=dict, repr=False)


class FleetEnv(SessionClient[FleetObservation]):
    """A session of ``fleet``.

    >>> env = FleetEnv.from_url("http://localhost:7860/fleet")
    >>> observation = env.reset(task_id="flash_crowds", seed=0)
    >>> while not observation.done:
    ...     observation, reward, done, info = env.step(action)
    >>> env.grade()["score"]
    """

    ENVIRONMENT = "fleet"
    OBSERVATION = FleetObservation
