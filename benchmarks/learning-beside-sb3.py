"""PPO by `servegym train` beside Stable-Baselines3 over Gymnasium: steps a second, and what was learned.

    python -m venv /tmp/sb3
    /tmp/sb3/bin/pip install -r benchmarks/learning-beside-sb3.txt
    /tmp/sb3/bin/python benchmarks/learning-beside-sb3.py [--task bursty_workload] [--steps 122880] [--seed 0]

Both see the same features and bins, keep the bins in force with the same bonus, and learn from 32 environments, 64 steps of
each between two updates, up to 8 passes in minibatches of 256, with two networks of two layers of 64 tanh units, at the
same learning rate, discount and entropy weight. Stable-Baselines3 plays over the vector environment of `clients/python`,
whose server shares the machine. Mean returns are of the training episodes that end in each fifth of the steps, with
exploration; with `--task any` each is on another server (`servegym train --servers any`, `reset_options={"servers": "any"}`).
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "clients" / "python" / "src"))

import torch  # noqa: E402
from servegym import make_vec  # noqa: E402
from servegym.stable_baselines3 import KeepBonus, KeepBonusPolicy  # noqa: E402
from stable_baselines3 import PPO  # noqa: E402
from stable_baselines3.common.callbacks import BaseCallback  # noqa: E402

class Returns(BaseCallback):
    """Returns of the episodes that end."""

    def _on_training_start(self) -> None:
        self.episodes: list[tuple[int, float, int]] = []

    def _on_step(self) -> bool:
        ended = [info["episode"]["r"] for info in self.locals["infos"] if "episode" in info]
        self.episodes += [(self.num_timesteps, float(earned), 1) for earned in ended]
        return True


def stable_baselines(task: str, steps: int, seed: int) -> tuple[float, list[tuple[int, float, int]]]:
    played = {"task_id": task}
    if task == "any":
        played = {"reset_options": {"servers": "any"}, "observation_space": "features_and_server"}
    envs = make_vec(32, **played, library="stable-baselines3")
    model = PPO(
        KeepBonusPolicy,
        envs,
        n_steps=64,
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
    returns = Returns()
    started = time.perf_counter()
    model.learn(steps, callback=[KeepBonus(4.0, 1.0), returns])
    rate = model.num_timesteps / (time.perf_counter() - started)
    envs.close()
    return rate, returns.episodes


def servegym(task: str, steps: int, seed: int) -> tuple[float, list[tuple[int, float, int]]]:
    program = [str(ROOT / "node_modules" / ".bin" / "node"), str(ROOT / "packages" / "servegym" / "src" / "main.ts")]
    played = ["--servers", "any"] if task == "any" else ["--task", task]
    with tempfile.TemporaryDirectory() as folder:
        options = [*played, "--steps", str(steps), "--seed", str(seed), "--out", folder, "--json"]
        done = subprocess.run([*program, "train", *options], capture_output=True, text=True, check=True)
        rows = [json.loads(line) for line in (Path(folder) / "metrics.jsonl").read_text().splitlines()]
    episodes = [(row["steps"], row["mean_return"], row["episodes"]) for row in rows if row["episodes"]]
    return float(json.loads(done.stdout)["steps_per_s"]), episodes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="bursty_workload")
    parser.add_argument("--steps", type=int, default=122_880)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    # More threads make networks of this size slower.
    torch.set_num_threads(1)
    for name, learn in {"servegym train": servegym, "Stable-Baselines3": stable_baselines}.items():
        rate, episodes = learn(options.task, options.steps, options.seed)
        fifths: list[list[tuple[int, float, int]]] = [[] for _ in range(5)]
        for row in episodes:
            fifths[min(4, 5 * (row[0] - 1) // options.steps)].append(row)
        means = [sum(earned * n for _, earned, n in rows) / sum(n for _, _, n in rows) for rows in fifths if rows]
        print(f"{name:18} {rate:7,.0f} steps/s   mean return {'  '.join(f'{each:5.1f}' for each in means)}")


if __name__ == "__main__":
    main()
