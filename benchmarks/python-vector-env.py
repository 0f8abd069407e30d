"""Steps a second of the Gymnasium VectorEnv from Python, beside the same environments in one Node process without a wire.

    .venv/bin/python benchmarks/python-vector-env.py [--num-envs 64] [--seconds 5] [--rounds 3]

Server and client share the machine. Both sides play the same tasks, seeds and constant action, and start an episode
anew where one has ended; rounds alternate between them, and medians are told.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "clients" / "python" / "src"))

import numpy as np  # noqa: E402
from servegym import LocalServer, ServeGymVectorEnv  # noqa: E402

SEED = 0
INFERENCE = {"kv_budget": 1.0, "spec_length": 0, "batch_size": 64, "prefill_disagg": 0, "quant_tier": 0}
SERVE = {
    "batch_cap": 96,
    "kv_budget_fraction": 0.5,
    "speculation_depth": 0,
    "quantization_tier": 0,
    "prefill_decode_split": 0,
    "priority_routing": 0,
}
FLEET = {
    "replicas": 8,
    "second_replicas": 0,
    "prefill_replicas": 0,
    "routing_queue": 1,
    "routing_cache": 0,
    "routing_prefix": 0,
    "admission_seconds": 600,
    "max_num_batched_tokens": 2048,
    "max_num_active_seqs": 256,
}
CASES = (
    ("inferencegym", 1, INFERENCE),
    ("inferencegym", 3, INFERENCE),
    ("llmserve", "static_workload", SERVE),
    ("llmserve", "bursty_workload", SERVE),
    ("fleet", "flash_crowds", FLEET),
)


def over_the_wire(url: str, task_id: str | int, action: dict[str, float], count: int, seconds: float) -> float:
    envs = ServeGymVectorEnv(count, url=url, task_id=task_id, action_space="raw")
    envs.reset(seed=SEED)
    actions = {name: np.full(count, value) for name, value in action.items()}
    for _ in range(50):
        envs.step(actions)
    started = time.perf_counter()
    steps = 0
    while time.perf_counter() - started < seconds:
        envs.step(actions)
        steps += count
    rate = steps / (time.perf_counter() - started)
    envs.close()
    return rate


def in_process(environment: str, task_id: str | int, count: int, seconds: float) -> float:
    program = [str(ROOT / "node_modules" / ".bin" / "node"), str(ROOT / "benchmarks" / "vector-in-process.ts")]
    arguments = [environment, str(task_id), str(count), str(seconds)]
    return float(subprocess.run([*program, *arguments], capture_output=True, text=True, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-envs", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--environment", help="one alone")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    servers = {name: LocalServer(name, "--max-sessions", "4096") for name in ("inferencegym", "llmserve", "fleet")}
    rows = []
    for environment, task_id, action in CASES:
        if options.environment not in (None, environment):
            continue
        wire, own = [], []
        for _ in range(options.rounds):
            url = servers[environment].url
            wire.append(over_the_wire(url, task_id, action, options.num_envs, options.seconds))
            own.append(in_process(environment, task_id, options.num_envs, options.seconds))
        share = statistics.median(a / b for a, b in zip(wire, own, strict=True))
        rows.append((environment, task_id, round(statistics.median(wire)), round(statistics.median(own)), round(share, 2)))
    for server in servers.values():
        server.stop()
    names = ("environment", "task", "python_steps_per_s", "in_process_steps_per_s", "share")
    if options.json:
        print(json.dumps([dict(zip(names, row, strict=True)) for row in rows]))
    else:
        for row in [names, *rows]:
            print(" | ".join(str(cell).rjust(22) for cell in row))


if __name__ == "__main__":
    main()
