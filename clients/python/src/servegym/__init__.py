"""Python client of ServeGym: environments in which an agent learns to run an LLM inference server.

- :class:`LLMServeEnv`, :class:`FleetEnv`, :class:`InferenceGymEnv` and :class:`BenchmarkEnv`: sessions with named fields.
- ``gymnasium.make("ServeGym/LLMServe-v1")`` and :class:`ServeGymEnv`: Gymnasium.
- ``gymnasium.make_vec("ServeGym/LLMServe-v1", num_envs=64)`` and :class:`ServeGymVectorEnv`: many at once.
- :func:`make_vec`: features, bins and shaping of ServeGym's own training, for CleanRL's loops and Stable-Baselines3.
- :class:`servegym.trl.ServeOperator`: tools for TRL's ``environment_factory``.
"""

from .action_encoding import ActionEncoding
from .benchmark import BenchmarkAction, BenchmarkEnv, BenchmarkObservation
from .errors import (
    CapacityError,
    ConnectionLost,
    ServeGymError,
    ServerError,
    ServerNotStarted,
    WrongEnvironment,
)
from .features import FeatureEncoding
from .fleet import FleetAction, FleetEnv, FleetObservation
from .gymnasium_env import ServeGymEnv
from .inferencegym import InferenceAction, InferenceGymEnv, InferenceObservation
from .llmserve import LLMServeEnv, ServeAction, ServeObservation
from .local_server import LocalServer
from .observation_encoding import ObservationEncoding
from .registration import register_environments
from .vector_env import ServeGymVectorEnv
from .wrappers import BinsInForce, make_vec

__all__ = [
    "ActionEncoding",
    "BenchmarkAction",
    "BenchmarkEnv",
    "BenchmarkObservation",
    "BinsInForce",
    "CapacityError",
    "ConnectionLost",
    "FeatureEncoding",
    "FleetAction",
    "FleetEnv",
    "FleetObservation",
    "InferenceAction",
    "InferenceGymEnv",
    "InferenceObservation",
    "LLMServeEnv",
    "LocalServer",
    "ObservationEncoding",
    "ServeAction",
    "ServeGymEnv",
    "ServeGymError",
    "ServeGymVectorEnv",
    "ServeObservation",
    "ServerError",
    "ServerNotStarted",
    "WrongEnvironment",
    "make_vec",
    "register_environments",
]
__version__ = "0.1.0"

register_environments()
