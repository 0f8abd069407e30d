"""Programs that write programs: the files that OpenEvolve and SkyDiscover search a policy with.

``python -m servegym.evolve router FOLDER`` writes ``initial_program.py``, ``evaluator.py`` and ``config.yaml``. Then run
``openevolve-run FOLDER/initial_program.py FOLDER/evaluator.py --config FOLDER/config.yaml``. With ``--typescript`` the program is
``initial_program.ts``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from .local_server import servegym_command

#: Score of a program that is no policy; also that of a trace on which a policy was stopped.
BROKEN = -1.0
#: Modules whose ``EvaluationResult`` also takes text, which the model is shown.
_RESULTS = ("openevolve.evaluation_result", "skydiscover.evaluation.evaluation_result")

_EVALUATOR = '''\
"""Worth of a policy on the suite `{suite}`: 0 is the default, 1 the best that is known."""

from servegym.evolve import evaluate_policy


def evaluate(path):
    return evaluate_policy(path, suite="{suite}", split="train")
'''
_CONFIG = """\
max_iterations: 100
language: {language}
file_suffix: {suffix}
llm:
  api_base: https://api.openai.com/v1
  models:
    - name: gpt-5-mini
      weight: 1.0
  timeout: 300
prompt:
  system_message: |
    You improve a policy for a fleet of LLM inference servers: the module's `{suite}` function, in {imports}. Its comments
    list what it sees. The score is what answers inside their latency objectives are worth, less the bill of the GPUs.
    0 is the default and 1 the best policy that is known. A policy has no clock and no chance of its own.
evaluator:
  timeout: 600
  cascade_evaluation: false
"""


def evaluate_policy(path: str, suite: str, split: str = "validation", *arguments: str) -> Any:
    """Serves the traces of a suite with a policy.

    Args:
        path: the policy, Python, TypeScript or JavaScript.
        suite: such as ``router``; ``servegym policy evaluate --help`` lists them.
        split: ``train``, ``validation``, or ``test``, whose traces are drawn anew each time.
        arguments: further arguments of ``servegym policy evaluate``, such as ``"--requests", "2000"``.

    Returns:
        ``combined_score``, ``attainment`` and ``fairness``. Under OpenEvolve and SkyDiscover, their ``EvaluationResult``, which also
        tells the worst trace and what was wrong.
    """
    command = [*servegym_command(), "policy", "evaluate", path, "--suite", suite, "--split", split, *arguments, "--json"]
    environment = {"SERVEGYM_PYTHON": sys.executable, **os.environ}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode == 2:
        metrics, told = {"combined_score": BROKEN}, {"error": done.stderr.strip()}
    elif done.returncode != 0:
        raise RuntimeError(f"`{' '.join(command)}` ended with {done.returncode}: {done.stderr}")
    else:
        report = json.loads(done.stdout)
        metrics = {name: float(report[name]) for name in ("combined_score", "attainment", "fairness")}
        told = {"worst": json.dumps(report["worst"])}
        if report["faults"]:
            told["faults"] = json.dumps(report["faults"])
    for name in _RESULTS:
        if name in sys.modules:
            return sys.modules[name].EvaluationResult(metrics=metrics, artifacts=told)
    return metrics


def write_search(suite: str, folder: Path, typescript: bool = False) -> None:
    """Writes the three files for a suite, with a program in Python, or in TypeScript.

    Raises:
        subprocess.CalledProcessError: when there is no such suite, or the folder has a program.
    """
    folder.mkdir(parents=True, exist_ok=True)
    language, suffix = ("typescript", ".ts") if typescript else ("python", ".py")
    imports = "TypeScript without imports" if typescript else "Python with no imports but math, heapq and collections"
    subprocess.run([*servegym_command(), "policy", "new", suite, str(folder / f"initial_program{suffix}")], check=True)
    (folder / "evaluator.py").write_text(_EVALUATOR.format(suite=suite))
    (folder / "config.yaml").write_text(_CONFIG.format(suite=suite, language=language, suffix=suffix, imports=imports))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m servegym.evolve", description="Write the files to search a policy with.")
    parser.add_argument("suite", help="such as router, admission or autoscaler")
    parser.add_argument("folder", type=Path, help="where the files are written")
    parser.add_argument("--typescript", action="store_true", help="begin with a program in TypeScript")
    given = parser.parse_args()
    write_search(given.suite, given.folder, given.typescript)


if __name__ == "__main__":
    main()
