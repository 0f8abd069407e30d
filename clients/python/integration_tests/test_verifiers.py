"""verifiers from PyPI plays an episode with a stand-in for a model."""

import json
import os
import subprocess
import sys
from pathlib import Path

SETTINGS = {
    **{"batch_cap": 64, "kv_budget_fraction": 0.5, "speculation_depth": 0, "quantization_tier": "FP16"},
    **{"prefill_decode_split": False, "priority_routing": False, "windows": 20},
}


def test_vf_eval_rewards_an_episode_with_its_grade(tmp_path, stand_in) -> None:
    model = stand_in(["I would rather talk.", json.dumps(SETTINGS), f"```json\n{json.dumps(SETTINGS)}\n```"])
    run = [Path(sys.executable).parent / "vf-eval", "servegym-verifiers", "-m", "stand-in", "--env.taskset.episodes", "1"]
    options = ["--client.base-url", model.url, "--no-push", "--no-rich", "--output-dir", str(tmp_path)]
    environment = {**os.environ, "OPENAI_API_KEY": "none", "PRIME_API_KEY": "none"}
    done = subprocess.run([*run, *options], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    [traces] = tmp_path.rglob("traces.jsonl")
    [episode] = map(json.loads, traces.read_text().splitlines())
    assert episode["ok"], episode["errors"]
    assert "two GPUs" in model.asked[0] and "expected a JSON object" in model.asked[1] and len(model.asked) == 4
    assert 0.1 < episode["traces"][0]["rewards"]["grade"]["score"] < 1
