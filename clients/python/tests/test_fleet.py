"""The environment ``fleet``."""

import runpy
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from servegym import FleetEnv, ServerError, make_vec

SHORT = {"hours": 0.05}


def test_a_session_is_played_and_graded(fleet_url):
    with FleetEnv.from_url(fleet_url) as env:
        observation = env.reset(task_id="agents", **SHORT, seed=1)
        action = env.tasks()[2]["default_action"]
        rewards = []
        while not observation.done:
            observation, reward, _, info = env.step({**action, "replicas": 6})
            rewards.append(reward)
        assert len(rewards) == 6
        assert observation.replicas_ready + observation.replicas_starting == 6
        assert len(info["replicas"]) == 6
        grade = env.grade()
        assert 0 < grade["score"] < 1
        assert grade["breakdown"]["return"] == pytest.approx(sum(rewards))
        with pytest.raises(ServerError, match="replicas") as refusal:
            env.reset(task_id="agents", **SHORT, seed=1)
            env.step({**action, "replicas": 33})
        assert refusal.value.code == "VALIDATION_ERROR"


@pytest.mark.parametrize("action_space", ["box", "bins", "raw"])
def test_a_vector_plays_what_single_environments_play(fleet_url, action_space):
    options = {"url": fleet_url, "action_space": action_space, "observation_space": "features", "task_id": "agents"}
    single = gymnasium.make("ServeGym/Fleet-v0", reset_options=SHORT, **options)
    vector = gymnasium.make_vec("ServeGym/Fleet-v0", num_envs=2, reset_options=SHORT, **options)
    first, _ = single.reset(seed=3)
    observations, info = vector.reset(seed=3)
    assert info["seed"].tolist() == [3, 4]
    np.testing.assert_allclose(observations[0], first, rtol=1e-5, atol=1e-6)
    vector.action_space.seed(0)
    for _ in range(3):
        actions = vector.action_space.sample()
        own = {name: rows[0] for name, rows in actions.items()} if action_space == "raw" else actions[0]
        observations, rewards, *_ = vector.step(actions)
        observation, reward, *_ = single.step(own)
        np.testing.assert_allclose(observations[0], observation, rtol=1e-5, atol=1e-5)
        assert rewards[0] == pytest.approx(reward, rel=1e-5)
    single.close()
    vector.close()


def test_the_setting_of_the_own_training_is_there(fleet_url):
    envs = make_vec(2, "fleet", url=fleet_url, task_id="agents", reset_options=SHORT)
    observations, _ = envs.reset(seed=0)
    assert observations.shape == (2, envs.single_observation_space.shape[0])
    assert envs.step(envs.action_space.sample())[1].shape == (2,)
    envs.close()


def test_an_autoscaler_of_ones_own_sets_the_replicas(fleet_url):
    example = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "fleet_autoscaler.py"))
    seen = []

    def decide(observation):
        seen.append(observation.replicas_ready + observation.replicas_starting)
        return 3 + len(seen)

    with FleetEnv.from_url(fleet_url) as env:
        grade = example["play"](env, decide, task_id="agents", **SHORT, seed=1)
    assert seen[1:] == [4, 5, 6, 7, 8]
    assert grade["breakdown"]["windows_played"] == 6
