"""The verifier of the Harbor tasks: ``python -m servegym.harbor.grade GRADE.json FOLDER OUT``.

Reads the answer that the agent has left in FOLDER, and writes ``reward.txt`` (0 to 1) and ``details.json`` to OUT. GRADE.json
says which answer is worth 0 and which 1. It also holds the secret of the traffic, which no agent has seen.
"""

from __future__ import annotations

import csv
import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from ..local_server import servegym_command

#: Largest answer that is read, bytes.
LARGEST_ANSWER = 256 * 1024


class WrongAnswer(Exception):
    """The answer is worth nothing; the message says why."""


def grade(spec: dict[str, Any], folder: Path) -> tuple[float, dict[str, Any]]:
    """Reward of the answer in a folder, 0 to 1, and what it rests on.

    Args:
        spec: the content of ``grade.json``.
        folder: where the agent has left one of :func:`answers`.
    """
    names = answers(spec)
    found = [folder / name for name in names if (folder / name).is_file() and not (folder / name).is_symlink()]
    try:
        if len(found) != 1:
            raise WrongAnswer(f"expected the file {' or '.join(names)}, and there {'is none' if not found else 'are both'}")
        [answer] = found
        if answer.stat().st_size > LARGEST_ANSWER:
            raise WrongAnswer(f"expected at most {LARGEST_ANSWER} bytes in {answer.name}")
        value, details = _policy(spec, answer) if "suite" in spec else _options(spec, answer)
    except WrongAnswer as wrong:
        return 0.0, {"wrong": str(wrong)}
    return min(1.0, max(0.0, value)), details


def answers(spec: dict[str, Any]) -> list[str]:
    """Files of which an agent leaves one."""
    return [spec["answer"], "policy.py"] if "suite" in spec else [spec["answer"]]


def _policy(spec: dict[str, Any], answer: Path) -> tuple[float, dict[str, Any]]:
    """Score of a policy on the suite's test traces."""
    with tempfile.NamedTemporaryFile("w", suffix=".secret") as secret:
        secret.write(spec["secret"])
        secret.flush()
        traces = ["--suite", spec["suite"], "--split", "test", "--secret", secret.name, "--requests", str(spec["requests"])]
        report = json.loads(_servegym("policy", "evaluate", str(answer), *traces, "--json"))
    return report["combined_score"], {name: report[name] for name in ("combined_score", "ci95", "worst", "faults")}


def _options(spec: dict[str, Any], answer: Path) -> tuple[float, dict[str, Any]]:
    """Where the value of the answer's options stands between that of the first settings (0) and of the known best (1)."""
    words = _checked(spec, answer.read_text(errors="replace"))
    value = _value(spec, words)
    ends = (shlex.split(spec[end]) for end in ("start", "best"))
    try:
        start, best = (value if end == words else _value(spec, end) for end in ends)
    except WrongAnswer as wrong:
        raise RuntimeError(f"the settings of reward 0 and 1 do not fit this traffic: {wrong}") from wrong
    return (value - start) / (best - start), {"value": value, "start": start, "best": best}


def _checked(spec: dict[str, Any], text: str) -> list[str]:
    """The options of an answer. Each must be one of ``spec["options"]``, with a value from its list or between its bounds."""
    try:
        words = [part for word in shlex.split(text, comments=True) for part in word.split("=", 1)]
    except ValueError as error:
        raise WrongAnswer(f"expected options, got {text[:200]!r}: {error}") from error
    names, values = words[::2], words[1::2]
    if not names or len(names) != len(values) or len(set(names)) != len(names):
        raise WrongAnswer(f"expected options with a value each, each once, got {text[:200]!r}")
    for name, value in zip(names, values):
        allowed = spec["options"].get(name)
        if allowed is None:
            raise WrongAnswer(f"expected options of {', '.join(spec['options'])}, got {name}")
        if isinstance(allowed[0], str):
            if value not in allowed:
                raise WrongAnswer(f"expected {name} to be one of {', '.join(allowed)}, got {value}")
        elif not (value.replace(".", "", 1).isascii() and value.replace(".", "", 1).isdigit() and allowed[0] <= float(value) <= allowed[1]):
            raise WrongAnswer(f"expected {name} from {allowed[0]} to {allowed[1]}, got {value}")
    return words


def command(spec: dict[str, Any], words: list[str]) -> list[str]:
    """The command that simulates a deployment with these options; those of the engine stand in its line."""
    pairs = list(zip(words[::2], words[1::2]))
    of_engine = [part for pair in pairs if pair[0] not in spec["of_simulate"] for part in pair]
    of_simulate = [part for pair in pairs if pair[0] in spec["of_simulate"] for part in pair]
    return ["simulate", *spec["simulate"], *of_simulate, "--deployment", shlex.join([*spec["deployment"].split(), *of_engine])]


def _value(spec: dict[str, Any], words: list[str]) -> float:
    """What options are worth on the hidden traffic; more is better."""
    given = dict(zip(words[::2], words[1::2]))
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder, "requests.csv")
        told = _servegym(*command(spec, words), "--seed", str(spec["seed"]), "--requests-file", str(rows), "--json")
        with rows.open() as file:
            good = sum(_is_good(row, spec["slo"]) for row in csv.DictReader(file))
    if spec["objective"] == "good_requests":
        return float(good)
    share = good / json.loads(told)["requests"]
    if share < spec["least_share"]:
        raise WrongAnswer(f"expected {spec['least_share']:.1%} of the requests within {spec['slo']}, got {share:.2%}")
    if spec["objective"] == "rate_scale":
        return float(given["--rate-scale"])
    gpus = int(given.get("--replicas", 1)) * int(given.get("--tensor-parallel-size", 1))
    return -gpus * float(spec["prices"][given["--gpu"]])


def _is_good(row: dict[str, str], slo: dict[str, float]) -> bool:
    """Whether a request was answered within its objectives. An answer of one token has no TPOT."""
    return row["ttft_ms"] != "" and all(float(row[name] or 0) <= bound for name, bound in slo.items())


def _servegym(*arguments: str) -> str:
    """Standard output of a command. A command that refuses its input says in the answer what was wrong with it."""
    done = subprocess.run([*servegym_command(), *arguments], capture_output=True, text=True, check=False)
    if done.returncode == 2:
        raise WrongAnswer(done.stderr.strip())
    if done.returncode != 0:
        raise RuntimeError(f"servegym {shlex.join(arguments)} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def main() -> None:
    spec, folder, out = (Path(argument) for argument in sys.argv[1:4])
    reward, details = grade(json.loads(spec.read_text()), folder)
    out.mkdir(parents=True, exist_ok=True)
    (out / "details.json").write_text(json.dumps(details, indent=2))
    (out / "reward.txt").write_text(f"{reward:.6f}\n")
    print(f"reward {reward:.6f}: {json.dumps(details)}")


if __name__ == "__main__":
    main()
