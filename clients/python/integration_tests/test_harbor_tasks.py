"""Harbor's own package reads the tasks, and their scripts, with the paths redirected, give the rewards."""

import subprocess
import sys
from pathlib import Path

import pytest
from harbor.models.task.task import Task
from harbor.models.task.verifier_mode import resolve_verifier_environment_definition

from servegym.harbor.write import TASKS, write_tasks

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from test_harbor import run_script  # noqa: E402


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("harbor")
    wheel = folder / "servegym-0.0.0-py3-none-any.whl"
    wheel.touch()
    # Shorter traces than those of an agent. With 2,000 requests, differences between policies drown in chance.
    write_tasks(folder / "tasks", secret="5e" * 32, wheel=wheel, requests=8000)
    return folder / "tasks"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", TASKS)
def test_harbor_reads_a_task_with_a_verifier_of_its_own(tasks: Path, name: str) -> None:
    task = Task(tasks / name)
    verifier = resolve_verifier_environment_definition(task.config, task.paths)
    assert verifier.directory.name == "tests" and verifier.bundled_tests
    assert verifier.config.network_mode.value == "no-network"
    assert task.paths.discovered_test_path_for(task.config.environment.os) and task.instruction.startswith("# ")


def test_harbor_finds_nothing_wrong_with_the_files(tasks: Path) -> None:
    lint = [Path(sys.executable).parent / "harbor", "lint", *map(str, tasks.iterdir())]
    done = subprocess.run(lint, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", TASKS)
def test_the_solution_is_worth_0_9_or_more_and_its_absence_nothing(tasks: Path, tmp_path: Path, name: str) -> None:
    task, app, out = tasks / name, tmp_path / "app", tmp_path / "logs"
    app.mkdir()

    def reward() -> float:
        run_script(task / "tests" / "test.sh", task, app, out)
        return float((out / "reward.txt").read_text())

    assert reward() == 0
    [given] = [*(task / "environment").glob("policy.ts"), *(task / "environment").glob("options.txt")] or [None]
    if given:
        (app / given.name).write_text(given.read_text())
        assert reward() == 0
    run_script(task / "solution" / "solve.sh", task, app, out)
    assert reward() >= 0.9
