"""An autoscaler of your own on a fleet: python fleet_autoscaler.py [seed]. Here it is NVIDIA Dynamo's planner, unmodified.

Needs ``ai-dynamo`` 1.6.1, on Python 3.11 to 3.13. The planner decides by its own classes, in virtual time and in its default
mode, which compares queued prompts and KV use with thresholds. The adapter below stands for its metrics and its connector.
"""

import asyncio
import sys

from servegym import FleetEnv

TASKS = ("diurnal", "flash_crowds", "agents")


def play(env, decide, **options):
    """The grade of an episode whose replicas ``decide(observation)`` chooses; the other knobs stay at their defaults."""
    observation = env.reset(**options)
    action = next(task for task in env.tasks() if task["id"] == options["task_id"])["default_action"]
    while not observation.done:
        action = {**action, "replicas": decide(observation)}
        observation, *_ = env.step(action)
    return env.grade()


class DynamoPlanner:
    """Replicas by Dynamo's planner, which is asked once a window.

    Args:
        server: description of the server, from an observation.
        window_s: length of a window, s.
    """

    def __init__(self, server, window_s=30):
        from dynamo.planner.config.planner_config import PlannerConfig
        from dynamo.planner.core.types import EngineCapabilities, WorkerCapabilities
        from dynamo.planner.plugins.clock import VirtualClock
        from dynamo.planner.plugins.orchestrator.engine_adapter import OrchestratorEngineAdapter

        config = PlannerConfig(
            mode="agg",
            backend="vllm",
            environment="virtual",
            decode_engine_num_gpu=1,
            max_gpu_budget=server["max_replicas"],
            load_adjustment_interval_seconds=window_s,
        )
        replica = EngineCapabilities(num_gpu=1, max_kv_tokens=server["kv_cache_tokens"])
        self._planner = OrchestratorEngineAdapter(config, WorkerCapabilities(decode=replica), clock=VirtualClock())
        self._loop = asyncio.new_event_loop()
        self._loop.run_until_complete(self._planner.bootstrap_plugins())
        self._tick = self._planner.initial_tick(0.0)
        self._wanted = 0

    def __call__(self, observation):
        from dynamo.planner.core.types import FpmObservations, TickInput, WorkerCounts

        ready, starting = observation.replicas_ready, observation.replicas_starting
        if observation.step_index == 0:
            # Nothing has been measured. The planner's first tick is at the end of the first window.
            self._wanted = ready + starting
            return self._wanted
        counts = WorkerCounts(
            ready_num_decode=ready,
            expected_num_decode=self._wanted,
            decode_scaling_in_progress=ready != self._wanted,
            pending_num_decode=starting if observation.replicas_draining == 0 else 0,
        )
        tick = TickInput(
            now_s=self._tick.at_s,
            worker_counts=counts,
            fpm_observations=FpmObservations(decode=self._replicas(observation)),
        )
        effects = self._loop.run_until_complete(self._planner.tick(self._tick, tick))
        self._tick = effects.next_tick
        if effects.scale_to is not None and effects.scale_to.num_decode is not None:
            self._wanted = effects.scale_to.num_decode
        return self._wanted

    def _replicas(self, observation):
        """What each ready replica would report: the fullest, and the mean of the others."""
        from dynamo.common.forward_pass_metrics import (
            ForwardPassMetrics,
            QueuedRequestMetrics,
            ScheduledRequestMetrics,
        )

        ready, most = observation.replicas_ready, observation.kv_cache_usage_most
        others = (observation.kv_cache_usage_perc * ready - most) / max(1, ready - 1)
        classes = (observation.interactive, observation.batch, observation.best_effort)
        arrivals = sum(each["arrivals_per_second"] for each in classes)
        prompt = observation.arrived_prompt_tokens_per_second / arrivals if arrivals > 0 else 0
        waiting = observation.num_requests_waiting / max(1, ready)
        tokens = observation.server["kv_cache_tokens"]
        return {
            (str(i), 0): ForwardPassMetrics(
                worker_id=str(i),
                scheduled_requests=ScheduledRequestMetrics(
                    sum_decode_kv_tokens=round(tokens * (most if i == 0 else others))
                ),
                queued_requests=QueuedRequestMetrics(sum_prefill_tokens=round(waiting * prompt)),
            )
            for i in range(ready)
        }


if __name__ == "__main__":
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    for task_id in TASKS:
        with FleetEnv.local() as env:
            server = env.reset(task_id=task_id, seed=seed).server
            grade = play(env, DynamoPlanner(server), task_id=task_id, seed=seed)
            figures = grade["breakdown"]
            print(f"{task_id}: score {grade['score']:.3f}, return {figures['return']:.1f}", flush=True)
