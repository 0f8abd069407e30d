"""Requirements of TRL's ``GRPOTrainer``, without its gigabytes of dependencies."""

import inspect
import typing

from servegym.trl import ServeOperator


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
