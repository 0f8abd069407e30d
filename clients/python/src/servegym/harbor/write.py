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

_DOCKERFILE = """\
FROM python:3.12-slim
{install}{closing}WORKDIR /app
"""
# The package has the solutions: in the agent's container it is left without them.
_WITHOUT_SOLUTIONS = "RUN python3 -m servegym.harbor.blind && useradd --create-home agent && install -d -o agent /app\n"
_TEST = """\
#!/bin/bash
# Writes the reward, 0 to 1, of the file that the agent has left.
exec python3 -m servegym.harbor.grade /tests/grade.json /app /logs/verifier
"""
_TOML = """\
schema_version = "1.4"
artifacts = {artifacts}

[task]
name = "servegym/{name}"
version = "{version}"
description = "{title}"
authors = [{{ name = "ServeGym" }}]
keywords = ["llm-serving", "simulation", "{kind}"]

[metadata]
category = "{kind}"

[agent]
timeout_sec = 3600.0
user = "agent"

[environment]
build_timeout_sec = 900.0
cpus = 2
memory_mb = 4096
storage_mb = 10240

[verifier]
environment_mode = "separate"
timeout_sec = 900.0

[verifier.environment]
network_mode = "no-network"
cpus = 2
memory_mb = 4096
"""
_POLICY = """
## Score

Leave the policy in `/app/policy.ts` (TypeScript or JavaScript, without imports but for `definePolicy`) or in `/app/policy.py` (Python), and not in
both. The reward is its score on hidden traces of the suite `{suite}`: 0 for the default, 1 for the best policy that is known. `servegym policy evaluate policy.ts --suite {suite}` serves given traces
with it. Here it knows no best policy, so a score of 1 stands for a gain of 0.1 % of the price of all requests.
"""
_OPTIONS = """
## The server

```sh
servegym {command}
```

Objectives of a request: {slo}.

## Score

Leave one line of options in `/app/options.txt`, such as `{example}`. These are allowed, with these values:

{options}
{objective} The reward is 0 for the settings above and 1 for the best that are known.
The traffic that counts is drawn with another seed.
"""
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
    toml = _TOML.format(name=name, version=__version__, kind=kind, title=spec["title"], artifacts=artifacts)
    files = {
        "instruction.md": words + (_POLICY.format(**spec) if kind == "policy" else _settings(spec)),
        "task.toml": toml,
        "environment/Dockerfile": _DOCKERFILE.format(install=install, closing=_WITHOUT_SOLUTIONS),
        "tests/Dockerfile": _DOCKERFILE.format(install=install, closing="COPY test.sh grade.json /tests/\n"),
        "tests/test.sh": _TEST,
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
    return _OPTIONS.format(
        command=shlex.join(command(spec, spec["start"].split())),
        example=spec["start"] or "--max-num-seqs 64",
        slo=f"TTFT at most {slo['ttft_ms']} ms, TPOT at most {slo['tpot_ms']} ms",
        options="".join(f"- `{option}`: {values}\n" for option, values in ranges.items()),
        objective=_OBJECTIVES[spec["objective"]].format(share=f"{spec.get('least_share', 0):.0%}", prices=prices),
    )
