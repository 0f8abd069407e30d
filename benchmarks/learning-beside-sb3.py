"""PPO by `servegym train` beside Stable-Baselines3 over Gymnasium, on one task: steps a second, and what was learned.

    python -m venv /tmp/sb3
    /tmp/sb3/bin/pip install -r benchmarks/learning-beside-sb3.txt
    /tmp/sb3/bin/python benchmarks/learning-beside-sb3.py [--task bursty_workload] [--steps 122880] [--rounds 3] [--smoke]

Both see the same features and bins, keep the bins in force with the same bonus, and learn from 32 environments, 64 steps of
each between two updates, up to 8 passes in minibatches of 256, with two networks of two layers of 64 tanh units, at the
same learning rate, discount and entropy weight. Stable-Baselines3 plays over the vector environment of `clients/python`,
whose server shares the machine. Rounds alternate between them; each has a seed of its own, and medians are told. Policies
and the default configuration play the same test episodes. `--smoke` learns from two rollouts, to see that all works.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "clients" / "python" / "src"))

import torch  # noqa: E402
from servegym import make_vec  # noqa: E402
from servegym.stable_baselines3 import KeepBonus, KeepBonusPolicy  # noqa: E402
from stable_baselines3 import PPO  # noqa: E402

ENVIRONMENTS = 32
ROLLOUT_STEPS = 64
FIRST_TEST_SEED = 2_000_000
EPISODES = 20


def stable_baselines(task: str, steps: int, seed: int) -> tuple[float, float]:
    """Steps a second, and the mean return of the test episodes."""
    envs = make_vec(ENVIRONMENTS, task_id=task, library="stable-baselines3")
    model = PPO(
        KeepBonusPolicy,
        envs,
        n_steps=ROLLOUT_STEPS,
        batch_size=256,
        n_epochs=8,
        learning_rate=lambda left: 1e-3 * left,
        gamma=0.97,
        gae_lambda=0.95,
        ent_coef=0.003,
        target_kl=0.03,
        policy_kwargs={"net_arch": {"pi": [64, 64], "vf": [64, 64]}},
        device="cpu",
        seed=seed,
    )
    started = time.perf_counter()
    model.learn(steps, callback=KeepBonus(4.0, 1.0))
    rate = model.num_timesteps / (time.perf_counter() - started)
    envs.close()
    played = make_vec(EPISODES, task_id=task, statistics=envs.envs.statistics)
    observations, _ = played.reset(seed=FIRST_TEST_SEED)
    while True:
        actions, _ = model.predict(observations, deterministic=True)
        observations, _, _, truncated, infos = played.step(actions)
        if truncated.all():
            played.close()
            return rate, float(infos["episode"]["r"].mean())


def run_servegym(*arguments: str) -> dict[str, Any]:
    program = [str(ROOT / "node_modules" / ".bin" / "node"), str(ROOT / "packages" / "servegym" / "src" / "main.ts")]
    done = subprocess.run([*program, *arguments, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_return(agent: str, task: str) -> float:
    evaluation = run_servegym("evaluate", "--agent", agent, "--task", task, "--episodes", str(EPISODES))
    return float(evaluation["tasks"][task]["return"]["mean"])


def servegym(task: str, steps: int, seed: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        options = ["--task", task, "--steps", str(steps), "--seed", str(seed), "--out", folder]
        rate = float(run_servegym("train", *options)["steps_per_s"])
        return rate, test_return(f"{folder}/policy.safetensors", task)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="bursty_workload")
    parser.add_argument("--steps", type=int, default=122_880)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    steps, rounds = (2 * ENVIRONMENTS * ROLLOUT_STEPS, 1) if options.smoke else (options.steps, options.rounds)
    # More threads make networks of this size slower.
    torch.set_num_threads(1)
    learners = {"servegym train": servegym, "Stable-Baselines3": stable_baselines}
    results: dict[str, list[tuple[float, float]]] = {name: [] for name in learners}
    for seed in range(rounds):
        for name, learn in learners.items():
            results[name].append(learn(options.task, steps, seed))
    rates, returns = (
        {name: statistics.median(each[part] for each in found) for name, found in results.items()} for part in (0, 1)
    )
    times = rates["servegym train"] / rates["Stable-Baselines3"]
    default = test_return("default", options.task)
    load = round(os.getloadavg()[0], 2)
    if options.json:
        told = {"task": options.task, "steps": steps, "load": load, "steps_per_s": rates, "times": times}
        print(json.dumps({**told, "returns": returns, "default_return": default}))
    else:
        for name in learners:
            print(f"{name:20} {rates[name]:10,.0f} steps/s   return {returns[name]:6.2f}   default {default:6.2f}")
        print(f"{times:.1f} times as many steps a second; load average {load}")
    if not options.smoke and returns["Stable-Baselines3"] <= default:
        sys.exit("Stable-Baselines3 earned no more than the default configuration")


if __name__ == "__main__":
    main()
