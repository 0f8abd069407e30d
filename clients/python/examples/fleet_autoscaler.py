"""An autoscaler of your own on a fleet: python fleet_autoscaler.py [seed]. Change ``decide``."""

import math
import sys

from servegym import FleetEnv

TASKS = ("diurnal", "flash_crowds", "agents")
#: Share of the KV cache that ready replicas are to have in use. A choice.
WANTED_KV_USE = 0.6


def play(env, decide, **options):
    """The grade of an episode whose replicas ``decide(observation)`` chooses; the other knobs stay at their defaults."""
    observation = env.reset(**options)
    action = next(task for task in env.tasks() if task["id"] == options["task_id"])["default_action"]
    while not observation.done:
        action = {**action, "replicas": decide(observation)}
        observation, *_ = env.step(action)
    return env.grade()


def decide(observation):
    """Replicas that bring the use of KV to what is wanted, and one more while requests wait."""
    wanted = math.ceil(observation.replicas_ready * observation.kv_cache_usage_perc / WANTED_KV_USE)
    most = observation.server["max_replicas"]
    return min(most, max(1, wanted) + (observation.num_requests_waiting > 0))


if __name__ == "__main__":
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    for task_id in TASKS:
        with FleetEnv.local() as env:
            grade = play(env, decide, task_id=task_id, seed=seed)
            print(f"{task_id}: score {grade['score']:.3f}, return {grade['breakdown']['return']:.1f}", flush=True)
