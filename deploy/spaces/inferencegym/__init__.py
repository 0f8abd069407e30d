"""ServeGym: InferenceGym: a client for OpenEnv."""

from .client import InferenceGymEnv
from .models import InferenceAction, InferenceObservation, InferenceState

__all__ = ["InferenceGymEnv", "InferenceAction", "InferenceObservation", "InferenceState"]
