"""Writes tasks in the form of Harbor.

Each task is a folder in the form of Harbor (``instruction.md``, ``task.toml``, ``environment/``, ``tests/``, ``solution/``). The
verifier runs in a container of its own, on traffic drawn from a secret that stands in ``tests/`` only.
"""

from __future__ import annotations

import json
import secrets
import shlex
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..local_server import servegym_command
from .grade import answers, command

_HERE = Path(__file__).parent
_DATA: dict[str, Any] = json.loads((_HERE / "tasks.json").read_text())
#: Names of the tasks.
TASKS: tuple[str, ...] = tuple(_DATA["tasks"])


def _template(file: str, /, **values: Any) -> str:
    """A file of ``templates`` with values in the place of their names."""
    return (_HERE / "templates" / file).read_text().format(**values)


# The package has the solutions: in the agent's container it is left without them.
_WITHOUT_SOLUTIONS = "RUN python3 -m servegym.harbor.blind && useradd --create-home agent && install -d -o agent /app\n"
_OBJECTIVES = {
    "good_requests": "What counts is how many requests meet both objectives.",
    "usd_per_hour": "What counts is the price of the GPUs, while at least {share} of the requests meet both objectives. USD an hour: {prices}.",
    "rate_scale": "What counts is the value of `--rate-scale`, while at least {share} of the requests meet both objectives.",
}


def policies() -> Path:
    """The folder of the server's program that has the suites, and the best known policies in ``examples``."""
    return Path(servegym_command()[-1]).parent / "cli" / "policy"


def write_tasks(
    folder: Path, names: Iterable[str] = TASKS, *, wheel: Path | None = None, requests: int = 20_000, secret: str | None = None
) -> None:
    """Writes tasks, each into a folder of its name.

    Args:
        folder: where the tasks are written.
        names: some of :data:`TASKS`.
        wheel: a wheel of this package, which the images install. Default: the package of this version from PyPI.
        requests: requests of each hidden trace of a policy. Fewer make the verifier faster and the score less certain.
        secret: 64 hexadecimal digits that the hidden traffic is drawn from. Default: drawn for each task.

    Raises:
        FileExistsError: when the folder of a task is there.
    """
    for name in names:
        data = _DATA["tasks"][name]
        drawn = secret or secrets.token_hex(32)
        spec = {"answer": "options.txt", **data, "secret": drawn, "seed": int(drawn[:8], 16)}
        if "suite" in data:
            spec["requests"] = requests
        else:
            of_simulate = data.get("of_simulate", {})
            spec |= {
                "options": {**_DATA["options"], **data.get("options", {}), **of_simulate},
                "of_simulate": list(of_simulate),
                "prices": _DATA["prices"],
            }
        _write_task(folder / name, name, spec, wheel)


def _write_task(task: Path, name: str, spec: dict[str, Any], wheel: Path | None) -> None:
    from .. import __version__

    kind = "policy" if "suite" in spec else "operations"
    install = f"COPY {wheel.name} /tmp/\nRUN pip install --no-cache-dir /tmp/{wheel.name}\n" if wheel else (
        f"RUN pip install --no-cache-dir servegym=={__version__}\n"
    )
    if kind == "policy":
        [solution] = (policies() / "examples").glob(f"{spec['suite']}.[tj]s")
    words = (_HERE / "tasks" / f"{name}.md").read_text()
    artifacts = json.dumps([f"/app/{answer}" for answer in answers(spec)])
    about = {"name": name, "version": __version__, "kind": kind, "title": spec["title"], "artifacts": artifacts}
    without_solutions = _template("Dockerfile", install=install, closing=_WITHOUT_SOLUTIONS)
    with_tests = _template("Dockerfile", install=install, closing="COPY test.sh grade.json /tests/\n")
    files = {
        "instruction.md": words + (_template("policy.md", **spec) if kind == "policy" else _settings(spec)),
        "task.toml": _template("task.toml", **about),
        "environment/Dockerfile": without_solutions,
        "tests/Dockerfile": with_tests,
        "tests/test.sh": _template("test.sh"),
        "tests/grade.json": json.dumps(spec, indent=2),
        "solution/solve.sh": f'#!/bin/bash\ncp "$(dirname "$0")/{spec["answer"]}" /app/\n',
        f"solution/{spec['answer']}": f"{spec['best']}\n" if kind == "operations" else solution.read_text(),
    }
    broken = _HERE / "tasks" / f"{name}.js"
    start = f"{spec.get('start', '')}\n" if not broken.exists() else broken.read_text()
    if start.strip():
        files[f"environment/{spec['answer']}"] = start
        files["environment/Dockerfile"] += f"COPY --chown=agent {spec['answer']} /app/\n"
    task.mkdir(parents=True)
    for path, text in files.items():
        (task / path).parent.mkdir(exist_ok=True)
        (task / path).write_text(text)
        if path.endswith(".sh"):
            (task / path).chmod(0o755)
    for place in ("environment", "tests") if wheel else ():
        shutil.copy(wheel, task / place)


def _settings(spec: dict[str, Any]) -> str:
    """What the instruction says of the server, of the options, and of the score."""
    slo = spec["slo"]
    ranges = {
        option: f"from {allowed[0]} to {allowed[1]}" if not isinstance(allowed[0], str) else ", ".join(allowed)
        for option, allowed in spec["options"].items()
    }
    prices = ", ".join(f"{gpu} {spec['prices'][gpu]}" for gpu in spec["options"].get("--gpu", []))
    return _template(
        "options.md",
        command=shlex.join(command(spec, spec["start"].split())),
        example=spec["start"] or "--max-num-seqs 64",
        slo=f"TTFT at most {slo['ttft_ms']} ms, TPOT at most {slo['tpot_ms']} ms",
        options="".join(f"- `{option}`: {values}\n" for option, values in ranges.items()),
        objective=_OBJECTIVES[spec["objective"]].format(share=f"{spec.get('least_share', 0):.0%}", prices=prices),
    )
