import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FleetEpisode, type FleetRequests, type FleetTask, fleet } from '@servegym/environments';
import { createFleetPolicy } from './fleet-policies.ts';

const { diurnal } = fleet.tasks.shipped;
/** Chat at 60 requests a second for twenty minutes. */
const steady: FleetTask = {
  ...{ ...diurnal, id: 'steady', windows: 40 },
  streams: [{ ...diurnal.streams[0]!, rate: { perSecond: 60, peakToTrough: 1 } }],
};
/** Batch requests whose answers take minutes, in bursts. */
const longAnswers: FleetTask = {
  ...{ ...diurnal, id: 'long_answers', windows: 10 },
  streams: [
    {
      ...{ name: 'long', class: 'batch', rate: { perSecond: 3, peakToTrough: 1 } },
      lengths: {
        prompt: { median: 500, sigma: 0.3, min: 100, max: 2000 },
        output: { median: 6000, sigma: 0.3, min: 4000, max: 9000 },
      },
    },
  ],
};

/** Targets of a policy by window, and the observation before each. */
function watch(task: FleetTask, spec: string, requests: FleetRequests = fleet.drawRequests(task, 1)) {
  const episode = new FleetEpisode(task, 1, requests);
  const policy = createFleetPolicy(spec);
  policy.reset({ taskId: task.id, seed: 1 });
  return Array.from({ length: task.windows }, (_, stepIndex) => {
    const observation = episode.observation();
    const { action: previousAction } = episode;
    const { replicas } = policy.act({ observation, previousAction, reward: null, stepIndex });
    episode.step({ ...previousAction, replicas });
    const { num_requests_waiting: waiting, num_requests_running: running, replicas_draining } = observation;
    return { replicas, waiting, running, draining: replicas_draining };
  });
}

test('an autoscaler that never scales down: the SLA planner keeps its replicas when no request comes', () => {
  const all = fleet.drawRequests(steady, 1);
  const stopTick = all.startTicks.at(-1)! / 4;
  const before = all.startTicks.findIndex((tick) => tick > stopTick);
  const stopped = {
    ...all,
    starts: all.starts.subarray(0, before),
    startTicks: all.startTicks.subarray(0, before),
  };
  const planned = watch(steady, 'sla-planner', stopped).slice(12);
  assert.ok(planned[0]!.replicas > 1);
  assert.deepEqual(new Set(planned.map(({ replicas }) => replicas)), new Set([planned[0]!.replicas]));
  assert.equal(watch(steady, 'hpa', stopped).at(-1)!.replicas, 1);
});

test('an autoscaler that oscillates: KEDA on the queue goes from all replicas to one under steady load', () => {
  const range = (spec: string) => {
    const asked = watch({ ...steady, windows: 60 }, spec).map(({ replicas }) => replicas);
    const falls = asked.filter((replicas, i) => i > 0 && asked[i - 1]! - replicas >= 8).length;
    return { least: Math.min(...asked.slice(1)), falls };
  };
  const keda = range('keda');
  assert.equal(keda.least, 1);
  assert.ok(keda.falls >= 2, `${keda.falls}`);
  const rule = range('rule');
  assert.ok(rule.least >= 6);
  assert.equal(rule.falls, 0);
});

test('an autoscaler that ignores the queue: the SLA planner leaves thousands waiting on free GPUs', () => {
  // 32 sequences a replica are not enough for the load, and what runs is fast.
  const capped = { ...steady, defaultAction: { ...diurnal.defaultAction, max_num_active_seqs: 32 } };
  const planned = watch(capped, 'sla-planner');
  assert.ok(planned.at(-1)!.waiting > 10_000, `${planned.at(-1)!.waiting}`);
  assert.ok(Math.max(...planned.map(({ replicas }) => replicas)) <= capped.maxReplicas / 2);
  assert.ok(watch(capped, 'hpa').at(-1)!.waiting < 100);
});

test('an autoscaler fooled by a drain: the saturation mode waits for it while the load grows', () => {
  const held = watch(longAnswers, 'saturation').filter(({ draining }) => draining > 0);
  assert.ok(held.length >= 3);
  assert.equal(new Set(held.map(({ replicas }) => replicas)).size, 1);
  assert.ok(held.at(-1)!.running > 1.5 * held[0]!.running);
  const grown = watch(longAnswers, 'hpa').filter(({ draining }) => draining > 0);
  assert.ok(grown.at(-1)!.replicas > grown[0]!.replicas);
});
