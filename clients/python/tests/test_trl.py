"""Requirements of TRL's ``GRPOTrainer``, without its gigabytes of dependencies."""

import inspect
import typing
from concurrent.futures import ThreadPoolExecutor

from servegym.trl import ServeOperator, prompts


def tools_of(environment):
    """As ``GRPOTrainer`` finds them: public methods of the class, but ``reset`` and ``get_reward``."""
    return {
        name: getattr(environment, name)
        for name, _ in inspect.getmembers(type(environment), predicate=inspect.isfunction)
        if name not in ("reset", "get_reward") and not name.startswith("_")
    }


def test_it_offers_tools_with_types_and_descriptions(llmserve_url, monkeypatch):
    monkeypatch.setenv("SERVEGYM_URL", llmserve_url)
    tools = tools_of(ServeOperator())
    assert set(tools) == {"configure", "observe"}
    for tool in tools.values():
        hints = typing.get_type_hints(tool)
        documentation = inspect.getdoc(tool)
        assert hints["return"] is str
        assert "Returns:" in documentation
        for name in inspect.signature(tool).parameters:
            assert name in hints
            assert f"{name}: " in documentation


def test_a_rollout_is_played_and_rewarded(llmserve_url, monkeypatch):
    monkeypatch.setenv("SERVEGYM_URL", llmserve_url)
    operator = ServeOperator()
    # TRL passes every column of the dataset.
    told = operator.reset(prompt=[{"role": "user", "content": "x"}], task_id="static_workload", seed=0)
    assert "60 windows" in told
    configuration = dict(
        batch_cap=64,
        kv_budget_fraction=0.5,
        speculation_depth=0,
        quantization_tier="FP16",
        prefill_decode_split=False,
        priority_routing=False,
    )
    assert "Mean reward of 20 windows" in operator.configure(**configuration, windows=20)
    early = operator.get_reward()
    assert operator.configure(**configuration, windows=21).startswith("Error: windows must be")
    operator.configure(**configuration, windows=20)
    assert "The episode is done" in operator.configure(**configuration, windows=20)
    assert operator.configure(**configuration) == "Error: the episode is done"
    assert 0 < early < operator.get_reward() < 1
    assert operator.reset(task_id="static_workload", seed=0) == told


def test_a_model_is_told_of_the_knobs_that_a_task_masks(masked_task_url, monkeypatch):
    monkeypatch.setenv("SERVEGYM_URL", masked_task_url)
    told = ServeOperator().reset(task_id="fixed_arrangement", seed=0)
    assert 'must stay as they are: {"quantization_tier": "FP16", "prefill_decode_split": false}' in told


def test_groups_of_rollouts_on_one_server_rank_what_a_stand_in_does(llmserve_url, monkeypatch):
    """GRPO's rollouts: rows of the dataset, a group for each, and advantages within the group."""
    monkeypatch.setenv("SERVEGYM_URL", llmserve_url)
    rows = prompts(["static_workload"], episodes=2, first_seed=7)
    assert [(row["task_id"], row["seed"]) for row in rows] == [("static_workload", 7), ("static_workload", 8)]
    replies = [{"batch_cap": 1, "kv_budget_fraction": 1.0}, {"batch_cap": 96, "kv_budget_fraction": 0.2}]
    rest = {"speculation_depth": 3, "quantization_tier": "FP16", "prefill_decode_split": False}

    def rollout(row, reply):
        with ServeOperator() as operator:
            told = operator.reset(**row)
            assert "tokens emitted" in told and "Changes:" in told
            while "is done" not in operator.configure(**reply, **rest, priority_routing=False, windows=20):
                pass
            return operator.get_reward()

    for row in rows:
        group = [*replies, replies[0]]
        with ThreadPoolExecutor(len(group)) as pool:
            rewards = list(pool.map(lambda reply: rollout(row, reply), group))
        mean = sum(rewards) / len(rewards)
        assert rewards[0] == rewards[2] < mean < rewards[1]
