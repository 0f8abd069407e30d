"""Sessions with named fields."""

import pytest

from servegym import BenchmarkEnv, CapacityError, ConnectionLost, InferenceGymEnv, LLMServeEnv, ServerError
from servegym.local_server import LocalServer

DEFAULT = {
    "batch_cap": 32,
    "kv_budget_fraction": 1.0,
    "speculation_depth": 0,
    "quantization_tier": "FP16",
    "prefill_decode_split": False,
    "priority_routing": False,
}


def test_the_example_of_the_readme_plays_and_grades_an_episode(llmserve_url):
    env = LLMServeEnv.from_url(llmserve_url)
    observation = env.reset(task_id="static_workload", seed=0)
    assert observation.task_id == "static_workload"
    assert observation.reward is None
    rewards = []
    while not observation.done:
        observation, reward, done, info = env.step(DEFAULT)
        rewards.append(reward)
        assert done == observation.done
        assert "reward_components" in info
    grade = env.grade()
    assert 0 < grade["score"] < 1
    assert grade["breakdown"]["return"] == pytest.approx(sum(rewards))
    state = env.state()
    assert state["step_count"] == len(rewards)
    assert state["done"] is True
    env.close()


def test_a_seed_gives_the_same_episode_and_another_seed_another(llmserve_url):
    def episode(seed):
        with LLMServeEnv.from_url(llmserve_url) as env:
            env.reset(task_id="bursty_workload", seed=seed)
            return [env.step(DEFAULT)[0] for _ in range(5)]

    assert episode(3) == episode(3)
    assert episode(3) != episode(4)


def test_tasks_are_listed(llmserve_url):
    with LLMServeEnv.from_url(llmserve_url) as env:
        assert [task["id"] for task in env.tasks()][:3] == [
            "static_workload",
            "bursty_workload",
            "adversarial_multitenant",
        ]


def test_a_wrong_action_is_refused_by_name_and_the_episode_stands(llmserve_url):
    with LLMServeEnv.from_url(llmserve_url) as env:
        env.reset(seed=1)
        with pytest.raises(ServerError, match="batch_cap") as refusal:
            env.step({**DEFAULT, "batch_cap": 0})
        assert refusal.value.code == "VALIDATION_ERROR"
        assert env.state()["step_count"] == 0
        env.step(DEFAULT)
        assert env.state()["step_count"] == 1


def test_an_unknown_task_is_refused(llmserve_url):
    with LLMServeEnv.from_url(llmserve_url) as env, pytest.raises(ServerError, match="static_workload"):
        env.reset(task_id="nonsense")


def test_a_session_can_be_taken_up_again(llmserve_url):
    env = LLMServeEnv.from_url(llmserve_url)
    env.reset(seed=5)
    env.step(DEFAULT)
    again = LLMServeEnv.from_url(llmserve_url, session_id=env.session_id)
    assert again.state()["step_count"] == 1
    again.close()


def test_a_full_server_says_so():
    server = LocalServer("llmserve", "--max-sessions", "1")
    try:
        with LLMServeEnv.from_url(server.url) as first:
            first.reset(seed=0)
            with pytest.raises(CapacityError):
                LLMServeEnv.from_url(server.url).reset(seed=0)
    finally:
        server.stop()
    assert not server.running
    with pytest.raises(ConnectionLost):
        LLMServeEnv.from_url(server.url)


@pytest.mark.parametrize("address", ["here", "ftp://host", "http://"])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(ValueError, match="Expected an address"):
        LLMServeEnv.from_url(address)


def test_inferencegym_plays_its_three_tasks(inferencegym_url):
    action = {"kv_budget": 1.0, "spec_length": 0, "batch_size": 32, "prefill_disagg": False, "quant_tier": 0}
    with InferenceGymEnv.from_url(inferencegym_url) as env:
        for task_id in (1, 2, 3):
            observation = env.reset(task_id=task_id, seed=42)
            steps = 0
            while not observation.done:
                observation, reward, _, info = env.step(action)
                assert -1 <= reward <= 1
                steps += 1
            assert steps == 200
            assert len(observation.priority_distribution) == 3
            assert 0 < env.grade()["score"] < 1
        assert env.info()


def test_benchmark_waits_as_long_as_it_is_told():
    with BenchmarkEnv.local() as env:
        first = env.reset()
        observation, reward, done, _ = env.step({"wait_seconds": 0.05})
        assert observation.waited_seconds >= 0.05
        assert observation.session_hash == first.session_hash
        assert (reward, done) == (pytest.approx(1 / 1.05), False)
        with pytest.raises(ServerError, match="wait_seconds"):
            env.step({"wait_seconds": -1})
