"""The environment of no-op-environment.ts on OpenEnv's own server, one uvicorn worker. Prints its URL."""

import socket

import uvicorn
from openenv.core.env_server import Action, Environment, Observation, State, create_fastapi_app
from pydantic import Field


class NoOpAction(Action):
    choice: int = Field(ge=0, le=9)


class NoOpObservation(Observation):
    value: float


class NoOp(Environment[NoOpAction, NoOpObservation, State]):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        super().__init__()
        self._state = State()

    def reset(self, seed=None, episode_id=None, **options):
        self._state = State(episode_id=episode_id, step_count=0)
        return NoOpObservation(value=0)

    def step(self, action, timeout_s=None, **options):
        self._state.step_count += 1
        return NoOpObservation(value=action.choice, reward=1)

    @property
    def state(self):
        return self._state


app = create_fastapi_app(NoOp, NoOpAction, NoOpObservation, max_concurrent_envs=100_000)
listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="critical")).run(sockets=[listener])
