"""Resource server of NeMo Gym: sessions of ``llmserve`` that a model operates with tools.

Tools are ``/configure`` and ``/observe`` (:class:`servegym.trl.ServeOperator`); the reward is the grade of the episode. Rows of a
dataset have ``task_id`` and ``seed`` beside ``responses_create_params``. ``python -m servegym.nemo_gym_server FILE`` writes such rows.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import sys
from pathlib import Path
from typing import Any, get_type_hints

from fastapi import FastAPI, HTTPException, Request
from nemo_gym.base_resources_server import (
    BaseResourcesServerConfig,
    BaseSeedSessionRequest,
    BaseSeedSessionResponse,
    BaseVerifyRequest,
    BaseVerifyResponse,
    SimpleResourcesServer,
)
from nemo_gym.server_utils import SESSION_ID_KEY
from pydantic import PrivateAttr, create_model

from .trl import ServeOperator

TOOLS = ("configure", "observe")


class SeedRequest(BaseSeedSessionRequest):
    """Episode of a row."""

    task_id: str | None = None
    seed: int | None = None


class SeedResponse(BaseSeedSessionResponse):
    """What the operator is told at first."""

    told: str


class ServeGymResourcesServer(SimpleResourcesServer):
    """Holds an operator for each session of NeMo Gym, from ``/seed_session`` to ``/verify``."""

    config: BaseResourcesServerConfig
    _operators: dict[str, ServeOperator] = PrivateAttr(default_factory=dict)

    def setup_webserver(self) -> FastAPI:
        app = super().setup_webserver()
        for name in TOOLS:
            app.post(f"/{name}")(self._endpoint(name))
        return app

    async def seed_session(self, request: Request, body: SeedRequest) -> SeedResponse:
        session = request.session[SESSION_ID_KEY]
        await self._close(session)
        self._operators[session] = operator = await asyncio.to_thread(ServeOperator)
        return SeedResponse(told=await asyncio.to_thread(operator.reset, body.task_id, body.seed))

    async def verify(self, request: Request, body: BaseVerifyRequest) -> BaseVerifyResponse:
        reward = await asyncio.to_thread(self._operator(request).get_reward)
        await self._close(request.session[SESSION_ID_KEY])
        return BaseVerifyResponse(**body.model_dump(), reward=reward)

    def _endpoint(self, name: str) -> Any:
        arguments = _arguments(name)

        async def call(request: Request, body: arguments) -> str:  # type: ignore[valid-type]
            return await asyncio.to_thread(functools.partial(getattr(self._operator(request), name), **body.model_dump()))

        call.__annotations__["body"] = arguments
        call.__annotations__["request"] = Request
        return call

    def _operator(self, request: Request) -> ServeOperator:
        operator = self._operators.get(request.session[SESSION_ID_KEY])
        if operator is None:
            raise HTTPException(409, "expected /seed_session before, and its cookie")
        return operator

    async def _close(self, session: str) -> None:
        operator = self._operators.pop(session, None)
        if operator is not None:
            await asyncio.to_thread(operator.__exit__)


def _arguments(name: str) -> Any:
    """Model of the arguments of a tool."""
    method = getattr(ServeOperator, name)
    hints = get_type_hints(method)
    parameters = list(inspect.signature(method).parameters.values())[1:]
    fields = {each.name: (hints[each.name], ... if each.default is each.empty else each.default) for each in parameters}
    return create_model(name.capitalize(), **fields)


def rows(task_id: str = "static_workload", seeds: range = range(100)) -> list[dict[str, Any]]:
    """Rows of a dataset, with the tools in OpenAI's Responses form."""
    tools = [
        {
            **{"type": "function", "name": name, "description": inspect.getdoc(getattr(ServeOperator, name)), "strict": False},
            "parameters": _arguments(name).model_json_schema(),
        }
        for name in TOOLS
    ]
    prompt = "You operate an LLM inference server. Call observe, then configure, until the episode is done."
    params = {"input": [{"role": "user", "content": prompt}], "tools": tools}
    return [{"task_id": task_id, "seed": seed, "responses_create_params": params} for seed in seeds]


if __name__ == "__main__":
    Path(sys.argv[1]).write_text("".join(f"{json.dumps(row)}\n" for row in rows()))
