"""The commands of docs/integrations.md that need no other library are run; those of the others stand in the release tests."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import servegym

PACKAGE = Path(servegym.__file__).parents[1]
PAGE = (Path(__file__).resolve().parents[3] / "docs" / "integrations.md").read_text()
COMMANDS = [line for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.M | re.S) for line in block.splitlines()]


def test_the_commands_of_the_page_write_what_it_says(tmp_path: Path) -> None:
    for command in COMMANDS:
        words = shlex.split(command)
        if words[:2] == ["python", "-m"]:
            environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}
            subprocess.run([sys.executable, *words[1:]], check=True, cwd=tmp_path, env=environment)
    assert len(list((tmp_path / "tasks").iterdir())) == 12 and (tmp_path / "mended" / "mend-autoscaler").is_dir()
    assert sorted(path.name for path in (tmp_path / "search").iterdir()) == ["config.yaml", "evaluator.py", "initial_program.py"]


def test_each_program_of_the_page_is_run_by_a_release_test() -> None:
    tests = "".join(path.read_text() for path in (Path(__file__).parents[1] / "integration_tests").glob("test_*.py"))
    for program in {shlex.split(command)[0] for command in COMMANDS} - {"python"}:
        assert f'"{program}"' in tests, program
