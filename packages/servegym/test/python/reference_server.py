"""A small environment on OpenEnv's own Python server. Prints the URLs of its servers; the arguments are their modes."""

import asyncio
import socket
import sys
from typing import Optional

import uvicorn
from openenv.core.env_server import Action, Environment, Observation, State, create_fastapi_app
from pydantic import Field


class AddAction(Action):
    amount: int = Field(ge=1, le=9, description="How much to add")


class AddObservation(Observation):
    total: int


class AddState(State):
    total: int = 0


class Adder(Environment[AddAction, AddObservation, AddState]):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        super().__init__()
        self._state = AddState()

    def reset(self, seed: Optional[int] = None, episode_id: Optional[str] = None, **options):
        self._state = AddState(episode_id=episode_id, total=(seed or 0) % 10)
        return AddObservation(total=self._state.total)

    def step(self, action: AddAction, timeout_s: Optional[float] = None, **options):
        self._state.total += action.amount
        self._state.step_count += 1
        return AddObservation(total=self._state.total, reward=action.amount / 10)

    @property
    def state(self) -> AddState:
        return self._state


async def serve():
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in sys.argv[1:]]
    servers = []
    for mode, listener in zip(sys.argv[1:], listeners):
        app = create_fastapi_app(
            Adder, AddAction, AddObservation, max_concurrent_envs=3, state_cls=AddState, mode=mode
        )
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
        servers.append(server.serve(sockets=[listener]))
    print(*(f"http://127.0.0.1:{listener.getsockname()[1]}" for listener in listeners), flush=True)
    await asyncio.gather(*servers)


asyncio.run(serve())
