"""Action, observation and state of the environment, as its server publishes them under ``/schema``."""

from openenv.core.env_server.types import Action, Observation, State
from pydantic import Field


class BenchmarkAction(Action):
    """How long the server takes to answer."""

    wait_seconds: float = Field(default=0.0, ge=0.0, le=60.0, description="How long to wait before answering, s")


class BenchmarkObservation(Observation):
    """Who answered, and after how long."""

    host_url: str
    pid: int
    session_hash: str
    waited_seconds: float
    timestamp: float


class BenchmarkState(State):
    """What the session has done."""

    host_url: str = ""
    pid: int = 0
    session_hash: str = ""
    resets: int = 0
    total_waited_seconds: float = 0.0
