"""Steps a second of training with PPO: `servegym train` beside Stable-Baselines3 over Gymnasium, on the same task.

    python -m venv /tmp/sb3
    /tmp/sb3/bin/pip install -r benchmarks/learning-beside-sb3.txt
    /tmp/sb3/bin/python benchmarks/learning-beside-sb3.py [--env llmserve] [--task bursty_workload] [--steps 40960] [--rounds 3]

Both learn from 32 environments, 64 steps of each between two updates, up to 8 passes in minibatches of 256, with two networks of two
layers of 64 tanh units. Stable-Baselines3 plays over the vector environment of `clients/python`, whose server shares the
machine. Rounds alternate between them; medians are told.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "clients" / "python" / "src"))

import numpy as np  # noqa: E402
from servegym import LocalServer, ServeGymVectorEnv  # noqa: E402
from stable_baselines3 import PPO  # noqa: E402
from stable_baselines3.common.vec_env import VecEnv, VecNormalize  # noqa: E402

ENVIRONMENTS = 32
ROLLOUT_STEPS = 64


class Adapter(VecEnv):
    """Our vector environment as Stable-Baselines3 wants it. The step that starts an episode counts as one of it."""

    def __init__(self, envs: ServeGymVectorEnv) -> None:
        self.envs = envs
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)

    def reset(self) -> np.ndarray:
        return self.envs.reset(seed=0)[0]

    def step_async(self, actions: np.ndarray) -> None:
        self.actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        observations, rewards, terminated, truncated, _ = self.envs.step(self.actions)
        dones = terminated | truncated
        infos = [
            {"terminal_observation": observations[e], "TimeLimit.truncated": bool(truncated[e])} if dones[e] else {}
            for e in range(self.num_envs)
        ]
        return observations, rewards.astype(np.float32), dones, infos

    def close(self) -> None:
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self.envs, attr_name, None)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs


def stable_baselines(url: str, task: str | int, steps: int) -> float:
    envs = VecNormalize(Adapter(ServeGymVectorEnv(ENVIRONMENTS, url=url, task_id=task, encoding="multi_discrete")))
    model = PPO(
        "MlpPolicy",
        envs,
        n_steps=ROLLOUT_STEPS,
        batch_size=256,
        n_epochs=8,
        target_kl=0.03,
        policy_kwargs={"net_arch": [64, 64]},
        device="cpu",
        seed=0,
    )
    started = time.perf_counter()
    model.learn(steps)
    rate = model.num_timesteps / (time.perf_counter() - started)
    envs.close()
    return rate


def servegym(environment: str, task: str | int, steps: int) -> float:
    node = str(ROOT / "node_modules" / ".bin" / "node")
    with tempfile.TemporaryDirectory() as folder:
        command = [node, str(ROOT / "packages" / "servegym" / "src" / "main.ts"), "train", "--env", environment]
        options = ["--task", str(task), "--steps", str(steps), "--out", folder, "--json"]
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout)["steps_per_s"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="llmserve", choices=["llmserve", "inferencegym"])
    parser.add_argument("--task", default="bursty_workload")
    parser.add_argument("--steps", type=int, default=40_960)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    task = int(options.task) if options.task.isdigit() else options.task
    rates: dict[str, list[float]] = {"servegym train": [], "Stable-Baselines3": []}
    server = LocalServer(options.env, "--max-sessions", "4096")
    for _ in range(options.rounds):
        rates["servegym train"].append(servegym(options.env, task, options.steps))
        rates["Stable-Baselines3"].append(stable_baselines(server.url, task, options.steps))
    server.stop()
    medians = {name: statistics.median(each) for name, each in rates.items()}
    times = medians["servegym train"] / medians["Stable-Baselines3"]
    if options.json:
        print(json.dumps({"env": options.env, "task": task, "steps_per_s": medians, "times": times}))
        return
    for name, rate in medians.items():
        print(f"{name:20} {rate:10,.0f} steps/s")
    print(f"{times:.1f} times as many")


if __name__ == "__main__":
    main()
