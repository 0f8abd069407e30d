"""BenchmarkEnv: an environment that only waits, to measure servers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypedDict

from .session_client import SessionClient


class BenchmarkAction(TypedDict, total=False):
    """How long the server takes to answer.

    Keys:
        wait_seconds: wait before the answer, 0 to 60 s. Default 0.
    """

    wait_seconds: float


@dataclass(frozen=True)
class BenchmarkObservation:
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
    reward: float | None
    done: bool
    metadata: dict[str, Any] = field(default_factory=dict, repr=False)



class BenchmarkEnv(SessionClient[BenchmarkObservation]):
    """A session of ``benchmark``. It has no tasks and no grades, and its episodes never end.

    >>> env = BenchmarkEnv.from_url("http://localhost:7860/benchmark")
    >>> env.reset()
    >>> observation, reward, done, info = env.step({"wait_seconds": 0.5})
    """

    ENVIRONMENT = "benchmark"
    OBSERVATION = BenchmarkObservation
