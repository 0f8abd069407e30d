"""Inspect from PyPI runs the task with its own stand-in for a model."""

from inspect_ai import eval as run
from inspect_ai.model import ModelOutput, ModelUsage, get_model

SETTINGS = {
    **{"batch_cap": 64, "kv_budget_fraction": 0.5, "speculation_depth": 0, "quantization_tier": "FP16"},
    **{"prefill_decode_split": False, "priority_routing": False},
}


def operated(calls: list[dict[str, object]], tmp_path) -> float:
    outputs = [ModelOutput.for_tool_call("mockllm/model", "configure", call) for call in calls]
    outputs.append(ModelOutput.from_content("mockllm/model", "Done."))
    for output in outputs:
        # Without it, Inspect loads a tokenizer to count tokens.
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    model = get_model("mockllm/model", custom_outputs=outputs)
    [log] = run("servegym/llmserve", task_args={"episodes": 1}, model=model, log_dir=str(tmp_path), display="none")
    assert log.status == "success", log.error
    [sample] = log.samples
    answers = [message.text for message in sample.messages if message.role == "tool"]
    assert len(answers) == len(calls) and all("Mean reward" in answer for answer in answers)
    return sample.scores["grade"].value


def test_the_score_is_the_grade_of_what_the_model_configured(tmp_path) -> None:
    played = operated([{**SETTINGS, "windows": 20}] * 3, tmp_path)
    assert 0 < operated([{**SETTINGS, "windows": 1}], tmp_path) < played < 1
