"""ServeGym: LLMServeEnv: a client for OpenEnv."""

from .client import LLMServeEnv
from .models import ServeAction, ServeObservation, ServeState

__all__ = ["LLMServeEnv", "ServeAction", "ServeObservation", "ServeState"]
