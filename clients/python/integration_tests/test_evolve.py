"""OpenEvolve and SkyDiscover from PyPI search a policy, with a stand-in that answers recorded edits."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from servegym.evolve import write_search

#: Few and short traces: the search is under test, not the score.
QUICK = ("--traces", "2", "--requests", "500")


def prepare(folder: Path, suite: str, api: str) -> list[str]:
    write_search(suite, folder, typescript=suite == "admission")
    program, evaluator, config = next(folder.glob("initial_program.*")), folder / "evaluator.py", folder / "config.yaml"
    evaluator.write_text(evaluator.read_text().replace('split="train"', f'"train", *{QUICK}').replace("suite=", ""))
    config.write_text(config.read_text().replace("https://api.openai.com/v1", api))
    return [str(program), str(evaluator), "--config", str(config), "--iterations", "2", "--output", str(folder / "out")]


def edit(folder: Path, suite: str) -> list[str]:
    """An edit that breaks the program, and one that turns the policy into the opposite."""
    text = next(folder.glob("initial_program.*")).read_text()
    line = next(line for line in text.splitlines() if line.strip().startswith("return "))
    worse = {"router": "return -replica.index;", "admission": "return false;", "autoscaler": "return 32;"}[suite]
    return [
        f"<<<<<<< SEARCH\n{line}\n=======\n{new}\n>>>>>>> REPLACE" for new in (f"{line} }}", line.replace(line.strip(), worse))
    ]


@pytest.mark.parametrize("suite", ["router", "admission"])
def test_openevolve_evaluates_the_edits_of_a_model(tmp_path, stand_in, suite: str) -> None:
    model = stand_in([])
    arguments = prepare(tmp_path, suite, model.url)
    model.answers = edit(tmp_path, suite)
    environment = {**os.environ, "OPENAI_API_KEY": "none"}
    run = [Path(sys.executable).parent / "openevolve-run", *arguments, "--log-level", "INFO"]
    done = subprocess.run(run, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    scores = [float(score) for score in re.findall(r"Evaluated program.*combined_score=(-?[\d.]+)", done.stderr)]
    assert len(scores) == 3 and -1 in scores, done.stderr[-3000:]
    best = json.loads((tmp_path / "out" / "best" / "best_program_info.json").read_text())
    assert best["metrics"]["combined_score"] == pytest.approx(max(scores), abs=1e-4)
    assert "list what it sees" in model.asked[0] and {"router": "def score", "admission": "definePolicy"}[suite] in model.asked[0]


def test_skydiscover_evaluates_the_edits_of_a_model(tmp_path, stand_in) -> None:
    model = stand_in([])
    arguments = prepare(tmp_path, "autoscaler", model.url)
    model.answers = edit(tmp_path, "autoscaler")
    environment = {**os.environ, "OPENAI_API_KEY": "none", "OPENAI_API_BASE": model.url}
    run = [Path(sys.executable).parent / "skydiscover-run", *arguments, "--search", "topk"]
    done = subprocess.run(run, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0 and model.asked, done.stdout + done.stderr
    best = next((tmp_path / "out").rglob("best_program_info.json"))
    assert "combined_score" in json.loads(best.read_text())["metrics"]
    assert "list what it sees" in model.asked[0] and "def scale" in model.asked[0]
