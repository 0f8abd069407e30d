"""Gymnasium's interfaces."""

import warnings
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from servegym import ServeGymEnv, ServeGymVectorEnv, ServerError, make_vec
from servegym.connection import HttpApi

DOCS = Path(__file__).parents[3] / "docs"
#: The checker is told nothing about bounds that physics does not give.
UNBOUNDED = "A Box observation space maximum value is infinity"


def complaints(found):
    """Complaints of the checker, without sockets that earlier tests have left to the garbage collector."""
    told = [str(each.message) for each in found if not issubclass(each.category, ResourceWarning)]
    return [message for message in told if UNBOUNDED not in message]


@pytest.mark.parametrize("action_space", ["box", "bins", "raw"])
def test_check_env_finds_nothing(llmserve_url, action_space):
    env = gymnasium.make("ServeGym/LLMServe-v1", url=llmserve_url, action_space=action_space)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        check_env(env.unwrapped)
    assert complaints(found) == []
    env.close()


@pytest.mark.parametrize(
    ("server", "page", "env_id"),
    [
        ("llmserve_url", "environments", "ServeGym/LLMServe-v1"),
        ("fleet_url", "fleet", "ServeGym/Fleet-v0"),
        ("inferencegym_url", "inferencegym", "ServeGym/InferenceGym-v1"),
    ],
)
def test_documentation_names_the_spaces(request, server, page, env_id):
    url = request.getfixturevalue(server)
    raw = gymnasium.make(env_id, url=url)
    coded = gymnasium.make(env_id, url=url, observation_space="features", action_space="bins")
    bins = " ".join(str(size) for size in coded.action_space.nvec)
    text = (DOCS / f"{page}.md").read_text()
    for shown in [
        f'gymnasium.make("{env_id}")',
        f"| version | {HttpApi(url).get('metadata')['version']} |",
        f"`{raw.action_space}`, or bins, `MultiDiscrete([{bins}])`",
        f"{raw.observation_space.shape[0]} numbers, or {coded.observation_space.shape[0]} features",
    ]:
        assert shown in text
    raw.close()
    coded.close()


def test_check_env_finds_nothing_in_inferencegym(inferencegym_url):
    env = gymnasium.make("ServeGym/InferenceGym-v1", url=inferencegym_url, task_id=3)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        check_env(env.unwrapped)
    assert complaints(found) == []
    assert env.observation_space.shape == (14,)
    env.close()


@pytest.mark.parametrize(("action_space", "expected"), [("box", "an array of 6 numbers, one each for batch_cap"), ("raw", "a dict with batch_cap")])
def test_an_action_that_is_none_is_answered_with_one(llmserve_url, action_space, expected):
    with ServeGymEnv(url=llmserve_url, action_space=action_space) as env:
        env.reset(seed=1)
        with pytest.raises(ValueError, match=f"Expected {expected}.*env.action_space.sample.*got 5"):
            env.step(5)
        env.step(env.action_space.sample())


def test_an_observation_is_rendered_as_text(llmserve_url):
    with gymnasium.make("ServeGym/LLMServe-v1", url=llmserve_url, render_mode="ansi") as env:
        _, info = env.reset(seed=1)
        assert f"request_arrival_rate: {info['observation']['request_arrival_rate']}" in env.render().split("\n")
    with pytest.raises(ValueError, match="render_mode None or one of .'ansi'., got 'human'"):
        ServeGymEnv(url=llmserve_url, render_mode="human")


def test_an_episode_ends_by_its_time_limit(llmserve_url):
    env = ServeGymEnv(url=llmserve_url, task_id="static_workload")
    observation, info = env.reset(seed=2)
    assert info["seed"] == 2
    assert dict(zip(env.observation_names, observation, strict=True))["queue_depth"] == 0
    truncated = False
    steps = 0
    while not truncated:
        _, _, terminated, truncated, info = env.step(np.array([0, 1, -1, -1, -1, -1], dtype=np.float32))
        assert not terminated
        steps += 1
    assert steps == 60
    assert info["observation"]["task_id"] == "static_workload"
    with pytest.raises(ServerError):
        env.step(env.action_space.sample())
    env.close()


def test_seeds_that_are_drawn_follow_from_the_given_one(llmserve_url):
    env = ServeGymEnv(url=llmserve_url)

    def seeds():
        return [env.reset(seed=7)[1]["seed"], env.reset()[1]["seed"], env.reset()[1]["seed"]]

    first = seeds()
    assert first == seeds()
    assert len(set(first)) == 3
    assert max(first) < 1_000_000
    env.close()


def test_box_actions_reach_every_value_and_none_outside(llmserve_url):
    env = ServeGymEnv(url=llmserve_url)
    encoding = env._actions
    low, high = (encoding.action(encoding.rows(np.full((1, 6), end, np.float32))[0]) for end in (-1, 1))
    assert low == {
        "batch_cap": 1,
        "kv_budget_fraction": pytest.approx(0.1),
        "speculation_depth": 0,
        "quantization_tier": "FP16",
        "prefill_decode_split": False,
        "priority_routing": False,
    }
    assert high == {
        "batch_cap": 512,
        "kv_budget_fraction": pytest.approx(1.0),
        "speculation_depth": 8,
        "quantization_tier": "INT4",
        "prefill_decode_split": True,
        "priority_routing": True,
    }
    grid = np.linspace(-1, 1, 9001, dtype=np.float32)
    rows = encoding.rows(np.repeat(grid[:, None], 6, axis=1))
    assert [len(np.unique(rows[:, column])) for column in (0, 2, 3, 4, 5)] == [512, 9, 3, 2, 2]
    counts = np.unique(rows[:, 3], return_counts=True)[1]
    assert counts.min() / counts.max() > 0.99
    for wrong in (1.01, np.nan, np.inf):
        with pytest.raises(ValueError, match="from -1 to 1"):
            encoding.rows(np.full((1, 6), wrong))
    env.close()


@pytest.mark.parametrize("observation_space", ["raw", "features"])
def test_a_vector_of_environments_plays_what_single_ones_play(llmserve_url, observation_space):
    count, steps, seed = 4, 65, 11
    vector = gymnasium.make_vec(
        "ServeGym/LLMServe-v1", num_envs=count, url=llmserve_url, task_id="static_workload", observation_space=observation_space
    )
    assert vector.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    rng = np.random.default_rng(0)
    table = rng.uniform(-1, 1, (steps, count, 6)).astype(np.float32)
    # One change of precision costs seconds of simulated time; the rest is about the wire.
    table[:, :, 3] = -1
    first, info = vector.reset(seed=seed)
    assert vector.observation_space.contains(first)
    assert info["seed"].tolist() == [11, 12, 13, 14]
    played = [vector.step(actions) for actions in table]
    for index in range(count):
        env = ServeGymEnv(url=llmserve_url, task_id="static_workload", observation_space=observation_space)
        observation, _ = env.reset(seed=seed + index)
        np.testing.assert_array_equal(observation, first[index])
        restarts = False
        for step, (observations, rewards, terminated, truncated, _) in enumerate(played):
            if restarts:
                observation, _ = env.reset(seed=seed + count + index)
                reward, done = 0.0, False
            else:
                observation, reward, _, done, _ = env.step(table[step, index])
            # Features subtract numbers of float32 here, of float64 there.
            atol = 1e-6 if observation_space == "features" else 0
            np.testing.assert_allclose(observations[index], observation, rtol=1e-6, atol=atol)
            assert rewards[index] == pytest.approx(reward, abs=1e-6)
            assert (truncated[index], terminated[index]) == (done, False)
            restarts = done
        env.close()
    vector.close()


def test_vectors_take_all_encodings_and_refuse_what_is_outside(llmserve_url):
    for action_space in ("bins", "raw"):
        vector = ServeGymVectorEnv(3, url=llmserve_url, action_space=action_space)
        vector.reset(seed=0)
        observations, rewards, _, _, _ = vector.step(vector.action_space.sample())
        assert observations.shape == (3, vector.single_observation_space.shape[0])
        assert rewards.shape == (3,)
        vector.close()
    vector = ServeGymVectorEnv(2, url=llmserve_url)
    with pytest.raises(ResetNeeded):
        vector.step(np.zeros((2, 6)))
    with pytest.raises(ValueError, match="follow each other"):
        vector.reset(seed=[1, 5])
    vector.reset(seed=[3, 4])
    with pytest.raises(ValueError, match="from -1 to 1"):
        vector.step(np.full((2, 6), 2.0))
    vector.close()


@pytest.mark.parametrize("action_space", ["box", "bins", "raw"])
def test_knobs_that_a_task_masks_stay_at_its_default(masked_task_url, action_space):
    env = ServeGymEnv(url=masked_task_url, task_id="fixed_arrangement", action_space=action_space)
    env.action_space.seed(1)
    env.reset(seed=3)
    tiers = []
    for _ in range(8):
        _, _, _, _, info = env.step(env.action_space.sample())
        tiers.append(info["quality"])
    assert tiers == [1] * 8
    env.reset(seed=3, options={"task_id": "bursty_workload"})
    assert min(env.step(env.action_space.sample())[4]["quality"] for _ in range(12)) < 1
    env.close()


def test_a_vector_holds_masked_knobs_in_its_rows_of_float32(masked_task_url):
    vector = ServeGymVectorEnv(2, url=masked_task_url, task_id="fixed_arrangement")
    vector.action_space.seed(1)
    vector.reset(seed=3)
    for _ in range(8):
        observations, _, _, _, _ = vector.step(vector.action_space.sample())
    assert dict(zip(vector.observation_names, observations[0], strict=True))["step_index"] == 8
    vector.close()


def test_bins_are_those_of_the_schema(llmserve_url):
    env = ServeGymEnv(url=llmserve_url, task_id="bursty_workload", action_space="bins")
    bins = HttpApi(llmserve_url).get("schema")["action"]["properties"]["batch_cap"]["bins"]
    at = [field.name for field in env._actions.fields].index("batch_cap")
    assert env.action_space.nvec[at] == len(bins)
    env.reset(seed=1)
    assert bins[env.bins_in_force[0, at]] == 128
    for index in range(len(bins)):
        action = env.bins_in_force[0].copy()
        action[at] = index
        env.step(action)
        assert env.bins_in_force[0].tolist() == action.tolist()
    env.close()


def test_features_need_a_server_that_has_them():
    from servegym.encodings import FeatureEncoding

    with pytest.raises(ValueError, match="no features"):
        FeatureEncoding([], (), ())


def test_make_vec_is_what_learners_take(llmserve_url):
    count, windows, seed = 3, 60, 5
    envs = make_vec(count, task_id="static_workload", url=llmserve_url)
    logits = int(envs.single_action_space.nvec.sum())
    observations, _ = envs.reset(seed=seed)
    assert envs.in_force == logits
    assert observations.dtype == np.float32
    plain = ServeGymVectorEnv(
        count, url=llmserve_url, task_id="static_workload", action_space="bins", observation_space="features"
    )
    plain.reset(seed=seed)
    splits = np.cumsum(envs.single_action_space.nvec)[:-1]
    random = np.random.default_rng(0)
    returns = np.zeros(count)
    for step in range(windows + 2):
        # A policy that knows nothing, and keeps the bins in force most of the time.
        favoured = random.gumbel(size=(count, logits)) + 4 * observations[:, -logits:]
        actions = np.stack([each.argmax(1) for each in np.split(favoured, splits, 1)], 1)
        observations, _, _, truncated, infos = envs.step(actions)
        rewards = plain.step(actions)[1]
        assert observations.shape == (count, envs.single_observation_space.shape[0])
        assert np.abs(observations).max() <= 10
        hot = np.split(observations[:, -logits:], splits, 1)
        assert all((each.sum(1) == 1).all() for each in hot)
        if step < windows:
            returns += rewards
            np.testing.assert_array_equal(np.stack([each.argmax(1) for each in hot], 1), actions)
        if truncated.all():
            assert step == windows - 1
            np.testing.assert_allclose(infos["episode"]["r"], returns, rtol=1e-5)
        if step == windows:
            np.testing.assert_array_equal(envs.unwrapped.bins_in_force, np.tile(envs.unwrapped.bins_in_force[0], (count, 1)))
    seen = envs.statistics.features.count
    again = make_vec(count, task_id="static_workload", url=llmserve_url, statistics=envs.statistics)
    again.reset(seed=seed)
    assert envs.statistics.features.count == seen
    for each in (envs, plain, again):
        each.close()


def test_servers_of_the_training_distribution_are_played_side_by_side(llmserve_url):
    options = {"url": llmserve_url, "reset_options": {"servers": "any"}, "observation_space": "features_and_server"}
    envs = make_vec(6, **options)
    envs.reset(seed=3)
    decode = [name.startswith("server_") for name in envs.unwrapped.observation_names]
    raw = ServeGymVectorEnv(6, action_space="bins", **options)
    first, _ = raw.reset(seed=3)
    described = first[:, decode]
    assert len(np.unique(described, axis=0)) == 6
    again, _ = raw.reset(seed=3)
    np.testing.assert_array_equal(first, again)
    ends = [raw.step(raw.bins_in_force)[3] for _ in range(120)]
    # All end in the same window, so that learners can take them as one batch.
    assert [each.any() for each in ends] == [False] * 119 + [True] and ends[-1].all()
    with pytest.raises(ServerError, match="without options that change a task"):
        raw.reset(seed=3, options={"shift": "rate_1.5"})
    for each in (envs, raw):
        each.close()
