import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FLEET_TASKS, type FleetAction, FleetEpisode, type FleetObservation } from '@servegym/environments';
import { createFleetPolicy, listFleetPolicies } from './fleet-policies.ts';

const task = FLEET_TASKS.diurnal;
const calm = new FleetEpisode({ ...task, windows: 1 }, 1).observation();

/** Replicas that a policy asks for, window by window, when each is shown what it asked for before. */
function replicasOf(
  spec: string,
  windows: readonly Partial<FleetObservation>[],
  from = task.defaultAction.replicas,
): number[] {
  const policy = createFleetPolicy(spec);
  // No task of the records: nothing is tuned for it.
  policy.reset({ taskId: 'own', seed: 1 });
  let previousAction: FleetAction = { ...task.defaultAction, replicas: from };
  return windows.map((window, i) => {
    const observation = { ...calm, replicas_ready: previousAction.replicas, ...window };
    previousAction = policy.act({ observation, previousAction, reward: 0, stepIndex: i + 1 });
    return previousAction.replicas;
  });
}
const running = (requests: number) => ({ num_requests_running: requests });

test('hpa asks for the requests in flight over its target, keeps within 10 %, and grows by doubling', () => {
  assert.deepEqual(replicasOf('hpa:40', [running(200)]), [5]);
  assert.deepEqual(replicasOf('hpa:40', [running(4 * 40 * 1.09)]), [4]);
  // Two syncs in a window: 2 -> 6 -> 12.
  assert.deepEqual(replicasOf('hpa:40', [running(2000)], 2), [12]);
  assert.deepEqual(replicasOf('hpa:40', [{ num_requests_running: 100, num_requests_waiting: 100 }]), [5]);
});

test('hpa goes down to the most that the last 300 s asked for', () => {
  const windows = [running(320), ...Array.from({ length: 10 }, () => running(40))];
  assert.deepEqual(replicasOf('hpa:40', windows), [8, ...Array(9).fill(8), 1]);
});

test('keda sees the queue alone: no queue, the least replicas', () => {
  assert.deepEqual(replicasOf('keda:5', [{ num_requests_running: 500, num_requests_waiting: 38 }]), [8]);
  const idle = Array.from({ length: 11 }, () => running(500));
  assert.equal(replicasOf('keda:5', idle).at(-1), 1);
});

test('saturation adds one replica when little is spare, takes one when enough is, and waits for those that start', () => {
  assert.deepEqual(replicasOf('saturation', [{ kv_cache_usage_perc: 0.71 }]), [5]);
  assert.deepEqual(replicasOf('saturation', [{ kv_cache_usage_perc: 0.3, num_requests_waiting: 9 }]), [5]);
  // 0.52 x 4 / 3 = 0.69 leaves 0.1 to spare; 0.53 does not.
  assert.deepEqual(replicasOf('saturation', [{ kv_cache_usage_perc: 0.52 }]), [3]);
  assert.deepEqual(replicasOf('saturation', [{ kv_cache_usage_perc: 0.53 }]), [4]);
  assert.deepEqual(replicasOf('saturation', [{ kv_cache_usage_perc: 0.79, replicas_starting: 1 }]), [4]);
});

test('the rule divides the work that arrived by what a replica is given, and remembers four windows', () => {
  const window = (prompts: number): Partial<FleetObservation> => ({
    arrived_prompt_tokens_per_second: prompts,
    prefix_cache_hit_rate: 0.5,
    request_generation_tokens_mean: 100,
    interactive: { ...calm.interactive, arrivals_per_second: 10 },
  });
  // 0.5 x 60,000 + 6 x 10 x 100 = 36,000.
  assert.deepEqual(replicasOf('rule:10000', [window(60_000)]), [4]);
  assert.deepEqual(
    replicasOf('rule:10000', [window(160_000), ...Array.from({ length: 4 }, () => window(0))]),
    [9, 9, 9, 9, 1],
  );
});

test('each policy plays an episode, and another name is refused with those that there are', () => {
  for (const { name } of listFleetPolicies()) {
    const episode = new FleetEpisode({ ...FLEET_TASKS.flash_crowds, windows: 6 }, 3);
    const policy = createFleetPolicy(name);
    policy.reset({ taskId: 'flash_crowds', seed: 3 });
    while (!episode.done) {
      const { window: stepIndex, action: previousAction } = episode;
      episode.step(
        policy.act({ observation: episode.observation(), previousAction, reward: null, stepIndex }),
      );
    }
    assert.ok(episode.totals.completed > 0);
  }
  for (const wrong of ['hpaa', 'hpa:', 'hpa:-1', 'hpa:1:2', 'toString']) {
    assert.throws(() => createFleetPolicy(wrong), {
      code: 'UNKNOWN_POLICY',
      message: /static\[:number\], hpa/,
    });
  }
});
