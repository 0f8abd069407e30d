"""The environments of ServeGym: of each the action, the observation, and the client of a session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Generic, Literal, TypedDict, TypeVar

from .connection import Connection, HttpApi, ServeGymError
from .local_server import shared_server

ObservationT = TypeVar("ObservationT")
ClientT = TypeVar("ClientT", bound="SessionClient[Any]")


class SessionClient(Generic[ObservationT]):
    """A session of a server, with the observations of one environment. Made by :meth:`from_url` or :meth:`local`."""

    #: As ``servegym serve --env`` names it.
    ENVIRONMENT = ""
    #: The dataclass of an observation: its own fields, ``reward``, ``done`` and ``metadata``.
    OBSERVATION: type[Any]

    def __init__(self, http: HttpApi, connection: Connection) -> None:
        self._http = http
        self._connection = connection

    @classmethod
    def from_url(
        cls: type[ClientT], url: str, *, token: str | None = None, session_id: str | None = None, timeout_s: float = 60.0
    ) -> ClientT:
        """Opens a session of a running server.

        Args:
            url: its address, such as ``http://localhost:7860`` or that of a Space.
            token: sent as ``authorization: Bearer``.
            session_id: a session to go on with, as :attr:`session_id` told it.
            timeout_s: how long a reply may take, s.

        Raises:
            ConnectionLost: when the server cannot be reached.
            WrongEnvironment: when it has another environment at this address.
            CapacityError: when it has no free session.
        """
        http = HttpApi(url, token=token, timeout_s=timeout_s)
        http.require_environment(cls.ENVIRONMENT)
        return cls(http, Connection(url, token=token, session_id=session_id, timeout_s=timeout_s))

    @classmethod
    def local(cls: type[ClientT]) -> ClientT:
        """Opens a session of a server on this machine, which is started when there is none and ends with this process.

        Raises:
            ServerNotStarted: when there is nothing to start it with.
        """
        return cls.from_url(shared_server(cls.ENVIRONMENT).url)

    @property
    def session_id(self) -> str | None:
        """By which the server knows this session; ``None`` when it does not tell."""
        return self._connection.session_id

    def reset(
        self, task_id: str | int | None = None, seed: int | None = None, **options: Any
    ) -> ObservationT:
        """Starts an episode.

        Args:
            task_id: one of :meth:`tasks`. Default the server's first.
            seed: of the traffic. Without one the server draws it and tells it in :meth:`state`.
            options: whatever else the server takes, such as ``config``.

        Raises:
            ServerError: when the server does not know the task or an option is wrong.
        """
        given = {"task_id": task_id, "seed": seed, **options}
        reply = self._connection.request("reset", {name: value for name, value in given.items() if value is not None})
        return self._observation(reply)

    def step(self, action: Mapping[str, Any]) -> tuple[ObservationT, float, bool, dict[str, Any]]:
        """Plays the next window.

        Args:
            action: its fields by name. The server refuses what is missing, unknown or out of range.

        Returns:
            Observation, reward, whether the episode is done, and what else the server tells (``info``).

        Raises:
            ServerError: when the action is refused; the episode stands where it stood.
        """
        reply = self._connection.request("step", dict(action))
        return self._observation(reply), float(reply["reward"] or 0.0), bool(reply["done"]), reply.get("metadata") or {}

    def state(self) -> dict[str, Any]:
        """The server's state of the episode: ``episode_id``, ``step_count`` and what the environment adds."""
        return self._connection.request("state")

    def grade(self) -> dict[str, Any]:
        """The grade of this session's episode, from the server's own record: ``score``, ``breakdown``, ``feedback``,
        and in ``replayed`` its task and seed.

        Raises:
            ServeGymError: when the server does not name its sessions.
        """
        if self.session_id is None:
            raise ServeGymError("The server does not name its sessions, so it cannot be asked for the grade of this one")
        return self._http.post("grader", {"session_id": self.session_id})

    def tasks(self) -> list[dict[str, Any]]:
        """The tasks of the server: ``id``, ``name``, ``difficulty``, ``description`` and more."""
        return self._http.get("tasks")["tasks"]

    def baseline(self, **query: Any) -> dict[str, Any]:
        """Scores of the server's baseline agents. Takes a while."""
        return self._http.get("baseline", **query)

    def close(self) -> None:
        """Ends the session."""
        self._connection.close()

    def __enter__(self: ClientT) -> ClientT:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _observation(self, reply: dict[str, Any]) -> ObservationT:
        known = {each.name for each in fields(self.OBSERVATION)}
        own = {name: value for name, value in reply["observation"].items() if name in known}
        beside = {"reward": reply["reward"], "done": reply["done"], "metadata": reply.get("metadata") or {}}
        return self.OBSERVATION(**own, **beside)


@dataclass(frozen=True, kw_only=True)
class Observation:
    """What stands beside the fields of every observation."""

    reward: float | None
    done: bool
    metadata: dict[str, Any] = field(default_factory=dict, repr=False)


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
class ServeObservation(Observation):
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
    quality_value: float
    step_index: int
    task_id: str
    relative: dict[str, Any]
    server: dict[str, Any]


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


class FleetAction(TypedDict):
    """The settings of the fleet for the next window.

    Keys:
        replicas: replicas wanted, 0 to 32.
        second_replicas: the same of the second kind, where the task has one; 0 otherwise.
        prefill_replicas: of the ready replicas, those that only prefill, 0 to 16.
        routing_cache: weight of free KV blocks, 0 to 4, over that of few requests in flight.
        routing_prefix: weight of known prefixes, 0 to 4.
        admission_seconds: seconds of queue above which best effort, then batch, is refused; 600 refuses nobody.
        max_num_batched_tokens: token budget of an iteration, 512 to 16384.
        max_num_active_seqs: most sequences that run at once on a replica, 1 to 512.
    """

    replicas: int
    second_replicas: int
    prefill_replicas: int
    routing_cache: float
    routing_prefix: float
    admission_seconds: float
    max_num_batched_tokens: int
    max_num_active_seqs: int


@dataclass(frozen=True)
class FleetObservation(Observation):
    """The fleet over the last window, or at its end. ``GET /schema`` describes every field."""

    num_requests_running: int
    num_requests_waiting: int
    kv_cache_usage_perc: float
    kv_cache_usage_most: float
    session_kv_tokens: int
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
class InferenceObservation(Observation):
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


class InferenceGymEnv(SessionClient[InferenceObservation]):
    """A session of ``inferencegym``.

    >>> env = InferenceGymEnv.from_url("http://localhost:7860")
    >>> observation = env.reset(task_id=1, seed=42, config={"alpha": 0.5})
    """

    ENVIRONMENT = "inferencegym"
    OBSERVATION = InferenceObservation

    def info(self) -> dict[str, Any]:
        """Schemas, tasks and the weights of the reward."""
        return self._http.get("info")


class BenchmarkAction(TypedDict, total=False):
    """How long the server takes to answer.

    Keys:
        wait_seconds: wait before the answer, 0 to 60 s. Default 0.
    """

    wait_seconds: float


@dataclass(frozen=True)
class BenchmarkObservation(Observation):
    """Who answered, and after how long.

    Attributes:
        host_url: the server that answered.
        pid: the process that answered.
        session_hash: tells sessions apart.
        waited_seconds: how long the step really waited, s; 0 after a reset.
        timestamp: when the server answered, seconds since 1970.
    """

    host_url: str
    pid: int
    session_hash: str
    waited_seconds: float
    timestamp: float


class BenchmarkEnv(SessionClient[BenchmarkObservation]):
    """A session of ``benchmark``. It has no tasks and no grades, and its episodes never end.

    >>> env = BenchmarkEnv.from_url("http://localhost:7860/benchmark")
    >>> env.reset()
    >>> observation, reward, done, info = env.step({"wait_seconds": 0.5})
    """

    ENVIRONMENT = "benchmark"
    OBSERVATION = BenchmarkObservation
