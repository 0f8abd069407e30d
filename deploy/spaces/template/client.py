"""Client of the environment, with its own types."""

from typing import Any

from openenv.core import EnvClient
from openenv.core.client_types import StepResult

from .models import {{action}}, {{observation}}, {{state}}


class {{client}}(EnvClient[{{action}}, {{observation}}, {{state}}]):
    """A session of the server at ``base_url``.

    >>> with {{client}}(base_url="http://localhost:{{port}}").sync() as env:
    ...     result = env.reset(seed=0)
    """

    def _step_payload(self, action: {{action}}) -> dict[str, Any]:
        return action.model_dump(exclude={"metadata"}, exclude_none=True)

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[{{observation}}]:
        reward, done, metadata = payload.get("reward"), payload.get("done", False), payload.get("metadata")
        observation = {{observation}}(**payload["observation"], reward=reward, done=done, metadata=metadata or {})
        return StepResult(observation=observation, reward=reward, done=done, metadata=metadata)

    def _parse_state(self, payload: dict[str, Any]) -> {{state}}:
        return {{state}}(**payload)
