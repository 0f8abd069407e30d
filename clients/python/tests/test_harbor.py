"""The Harbor tasks: what is written, and what answers are worth."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import servegym
from servegym.harbor.write import TASKS, write_tasks
from servegym.harbor.grade import grade

SECRET = "5e" * 32


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("harbor")
    write_tasks(folder, secret=SECRET)
    return folder


def run_script(script: Path, task: Path, app: Path, out: Path) -> None:
    """Runs a script of a task with its paths redirected, as it would run in Harbor's containers."""
    paths = {"/app": app, "/tests": task / "tests", "/logs/verifier": out}
    text = re.sub("|".join(paths), lambda found: str(paths[found[0]]), script.read_text())
    package = Path(servegym.__file__).parents[1]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(package)}
    subprocess.run(["bash", "-c", text, str(script)], check=True, env=environment)


@pytest.mark.parametrize("name", TASKS)
def test_a_task_has_the_files_of_harbor_and_hides_secret_and_solution_from_the_agent(tasks: Path, name: str) -> None:
    task = tasks / name
    for path in ("instruction.md", "task.toml", "environment/Dockerfile", "tests/Dockerfile", "tests/test.sh", "solution/solve.sh"):
        assert (task / path).is_file(), path
    seen = "".join(path.read_text() for path in [task / "instruction.md", *(task / "environment").iterdir()])
    spec = json.loads((task / "tests" / "grade.json").read_text())
    assert SECRET not in seen and str(spec["seed"]) not in seen
    assert (task / "solution" / spec["answer"]).read_text().strip() not in seen
    assert 'environment_mode = "separate"' in (task / "task.toml").read_text()


def test_the_scripts_of_a_task_reward_the_solution_with_1_and_its_absence_with_0(tasks: Path, tmp_path: Path) -> None:
    task = tasks / "cheapest-fleet-32b"
    app, out = tmp_path / "app", tmp_path / "out"
    app.mkdir()
    run_script(task / "tests" / "test.sh", task, app, out)
    assert float((out / "reward.txt").read_text()) == 0
    run_script(task / "solution" / "solve.sh", task, app, out)
    run_script(task / "tests" / "test.sh", task, app, out)
    assert float((out / "reward.txt").read_text()) == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "expected options with a value each"),
        ("--gpu h100 --replicas", "expected options with a value each"),
        ("--gpu h100 --gpu rtx4090", "each once"),
        ("--gpu h100 --replicas 0", "expected --replicas from 1 to 16, got 0"),
        ("--gpu h100 --replicas nan", "expected --replicas from 1 to 16, got nan"),
        ("--gpu h100 --replicas 1 --profile mine.json", "got --profile"),
        ("--gpu h100 --replicas 1 --quantization fp8", "got --quantization"),
        ("--gpu 'h100 --replicas 1", "No closing quotation"),
    ],
)
def test_options_that_are_not_allowed_are_worth_nothing(tasks: Path, tmp_path: Path, text: str, told: str) -> None:
    spec = json.loads((tasks / "cheapest-fleet-8b" / "tests" / "grade.json").read_text())
    (tmp_path / "options.txt").write_text(text)
    reward, details = grade(spec, tmp_path)
    assert reward == 0 and told in details["wrong"]


def test_a_link_out_of_the_folder_is_no_answer(tasks: Path, tmp_path: Path) -> None:
    spec = json.loads((tasks / "cheapest-fleet-8b" / "tests" / "grade.json").read_text())
    (tmp_path / "options.txt").symlink_to(tasks / "cheapest-fleet-8b" / "solution" / "options.txt")
    assert grade(spec, tmp_path)[0] == 0


def test_a_policy_in_python_has_the_reward_of_the_same_one_in_typescript(tasks: Path, tmp_path: Path) -> None:
    spec = json.loads((tasks / "write-prefill-decider" / "tests" / "grade.json").read_text()) | {"requests": 500}
    (tmp_path / "policy.py").write_text(
        "def disaggregate(request, fleet):\n    return request.prompt_tokens > 4000 and fleet.queue_seconds < 0.2\n"
    )
    reward, details = grade(spec, tmp_path)
    assert reward > 0 and not details["faults"]
    shutil.copy(tasks / "write-prefill-decider" / "solution" / "policy.ts", tmp_path)
    assert "there are both" in grade(spec, tmp_path)[1]["wrong"]
    (tmp_path / "policy.py").unlink()
    assert grade(spec, tmp_path) == (reward, details)
