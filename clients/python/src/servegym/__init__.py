"""Python client of ServeGym: environments in which an agent learns to run an LLM inference server.

- :class:`LLMServeEnv`, :class:`FleetEnv`, :class:`InferenceGymEnv` and :class:`BenchmarkEnv`: sessions with named fields.
- ``gymnasium.make("ServeGym/LLMServe-v1")`` and :class:`ServeGymEnv`: Gymnasium.
- ``gymnasium.make_vec("ServeGym/LLMServe-v1", num_envs=64)`` and :class:`ServeGymVectorEnv`: many at once.
- :func:`make_vec`: features, bins and shaping of ServeGym's own training, for CleanRL's loops and Stable-Baselines3.
- :class:`servegym.trl.ServeOperator`: tools for TRL's ``environment_factory``.
"""

import gymnasium

from .connection import (
    CapacityError,
    ConnectionLost,
    ServeGymError,
    ServerError,
    ServerNotStarted,
    WrongEnvironment,
)
from .encodings import ActionEncoding, FeatureEncoding, ObservationEncoding
from .environments import (
    BenchmarkAction,
    BenchmarkEnv,
    BenchmarkObservation,
    FleetAction,
    FleetEnv,
    FleetObservation,
    InferenceAction,
    InferenceGymEnv,
    InferenceObservation,
    LLMServeEnv,
    Observation,
    ServeAction,
    ServeObservation,
)
from .gymnasium_env import ServeGymEnv, ServeGymVectorEnv
from .local_server import LocalServer
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
    "Observation",
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

_IDS = {"ServeGym/LLMServe-v1": "llmserve", "ServeGym/Fleet-v0": "fleet", "ServeGym/InferenceGym-v1": "inferencegym"}


def register_environments() -> None:
    """Makes ``gymnasium.make("ServeGym/LLMServe-v1")`` and ``make_vec`` work. Called when the package is imported."""
    for id_, environment in _IDS.items():
        if id_ not in gymnasium.registry:
            gymnasium.register(
                id=id_,
                entry_point="servegym.gymnasium_env:ServeGymEnv",
                vector_entry_point="servegym.gymnasium_env:ServeGymVectorEnv",
                kwargs={"environment": environment},
            )


register_environments()
