"""The ids of Gymnasium."""

from __future__ import annotations

import gymnasium

_IDS = {
    "ServeGym/LLMServe-v1": {"environment": "llmserve"},
    "ServeGym/Fleet-v0": {"environment": "fleet"},
    "ServeGym/InferenceGym-v1": {"environment": "inferencegym"},
}


def register_environments() -> None:
    """Makes ``gymnasium.make("ServeGym/LLMServe-v1")`` and ``make_vec`` work. Called when the package is imported."""
    for id_, kwargs in _IDS.items():
        if id_ not in gymnasium.registry:
            gymnasium.register(
                id=id_,
                entry_point="servegym.gymnasium_env:ServeGymEnv",
                vector_entry_point="servegym.vector_env:ServeGymVectorEnv",
                kwargs=kwargs,
            )
