"""Addresses at which a server has another environment than the one that was asked for."""

import gymnasium
import pytest

from servegym import BenchmarkEnv, InferenceGymEnv, LLMServeEnv, ServeGymEnv, WrongEnvironment
from servegym.local_server import shared_server


@pytest.fixture(scope="module")
def root():
    """A server with ``llmserve`` at its root and the others below."""
    return shared_server("llmserve,inferencegym,benchmark").url


def test_a_session_of_another_environment_is_refused_and_told_where_the_right_one_is(root):
    with pytest.raises(WrongEnvironment) as refusal:
        InferenceGymEnv.from_url(root)
    assert str(refusal.value) == (
        f"Expected 'inferencegym' at {root}/, and the server has 'llmserve' there. "
        f"It has 'inferencegym' at {root}/inferencegym/."
    )
    with pytest.raises(WrongEnvironment, match=f"It has 'llmserve' at {root}/\\."):
        LLMServeEnv.from_url(f"{root}/inferencegym")
    with BenchmarkEnv.from_url(f"{root}/benchmark") as env:
        assert env.reset().waited_seconds == 0


def test_a_server_that_has_it_nowhere_says_so(inferencegym_url):
    with pytest.raises(WrongEnvironment, match="the server has 'inferencegym' there. It has no 'llmserve'. Give the"):
        LLMServeEnv.from_url(inferencegym_url)


def test_an_address_without_an_environment_is_refused(root):
    with pytest.raises(WrongEnvironment, match="does not list its environments"):
        LLMServeEnv.from_url(f"{root}/nothing/here")


@pytest.mark.parametrize("make", [gymnasium.make, gymnasium.make_vec])
def test_ids_of_gymnasium_are_held_to_their_environment(inferencegym_url, make):
    with pytest.raises(WrongEnvironment, match="'llmserve'"):
        make("ServeGym/LLMServe-v1", url=inferencegym_url)
    make("ServeGym/InferenceGym-v1", url=inferencegym_url).close()


def test_without_an_id_any_environment_is_played(inferencegym_url):
    env = ServeGymEnv(url=inferencegym_url)
    assert env.reset(seed=1)[0].shape == (14,)
    env.close()
