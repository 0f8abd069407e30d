"""Client of the environment, with its own types."""

from typing import Any

from openenv.core import EnvClient
from openenv.core.client_types import StepResult

from .models import InferenceAction, InferenceObservation, InferenceState


class InferenceGymEnv(EnvClient[InferenceAction, InferenceObservation, InferenceState]):
    """A session of the server at ``base_url``.

    >>> with InferenceGymEnv(base_url="http://localhost:7860").sync() as env:
    ...     result = env.reset(seed=0)
    """

    def _step_payload(self, action: InferenceAction) -> dict[str, Any]:
        return action.model_dump(exclude={"metadata"})

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[InferenceObservation]:
        reward, done, metadata = payload.get("reward"), payload.get("done", False), payload.get("metadata")
        observation = InferenceObservation(**payload["observation"], reward=reward, done=done, metadata=metadata or {})
        return StepResult(observation=observation, reward=reward, done=done, metadata=metadata)

    def _parse_state(self, payload: dict[str, Any]) -> InferenceState:
        return InferenceState(**payload)
