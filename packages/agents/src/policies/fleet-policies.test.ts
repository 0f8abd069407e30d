import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type FleetAction,
  FleetEpisode,
  type FleetObservation,
  type FleetRequests,
  type FleetTask,
  fleet,
} from '@servegym/environments';
import { createFleetPolicy, FLEET_POLICIES } from './fleet-policies.ts';

const task = fleet.tasks.shipped.diurnal;
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
    const observation = { ...calm, task_id: 'own', replicas_ready: previousAction.replicas, ...window };
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

test('static keeps as many replicas as it is told, or as earned most in training on the task', () => {
  assert.deepEqual(replicasOf('static:7', [running(500), running(0)]), [7, 7]);
  assert.deepEqual(replicasOf('static', [running(500)], 3), [3]);
  for (const taskId of fleet.tasks.shippedIds) {
    const policy = createFleetPolicy('static');
    policy.reset({ taskId, seed: 1 });
    const observation = { ...calm, task_id: taskId };
    const step = { observation, previousAction: task.defaultAction, reward: 0, stepIndex: 1 };
    assert.equal(policy.act(step).replicas, fleet.anchors.reference(taskId)?.constantReplicas);
  }
});

test('slo asks in proportion to the worse of both latencies over their objectives, at most twice as much', () => {
  const { ttft_objective_ms: ttft, tpot_objective_ms: tpot } = calm.server;
  const slow = (of: number, per: number) => ({
    time_to_first_token_seconds_p99: (of * ttft) / 1000,
    inter_token_latency_seconds_p99: (per * tpot) / 1000,
  });
  assert.deepEqual(replicasOf('slo', [slow(1.5, 0.2)]), [6]);
  assert.deepEqual(replicasOf('slo', [slow(0.2, 1.5)]), [6]);
  assert.deepEqual(replicasOf('slo', [slow(30, 0.2)]), [8]);
  assert.deepEqual(replicasOf('slo', [slow(1, 1)]), [4]);
});

test('aibrix provides the mean load of four minutes, whatever the latencies', () => {
  const load = (perSecond: number) => ({
    interactive: { ...calm.interactive, arrivals_per_second: perSecond },
    arrived_prompt_tokens_per_second: 1000 * perSecond,
    request_generation_tokens_mean: 200,
    inter_token_latency_seconds_p50: 10,
  });
  const [one, two] = [replicasOf('aibrix', [load(40)])[0]!, replicasOf('aibrix', [load(80)])[0]!];
  assert.ok(two > one && Math.abs(two - 2 * one) <= 1);
  const mean = replicasOf('aibrix', [load(40), load(80)]).at(-1)!;
  assert.ok(mean > one && mean < two);
});

test('spot puts half of the rule on the second kind, and one more', () => {
  const priced = { server: { ...calm.server, second: { ...calm.server.second, usd_per_replica_hour: 1 } } };
  const policy = createFleetPolicy('spot');
  const act = (seen: Partial<FleetObservation>) =>
    policy.act({
      ...{ observation: { ...calm, ...seen, task_id: 'own' }, previousAction: task.defaultAction },
      ...{ reward: 0, stepIndex: 1 },
    });
  const work = { arrived_prompt_tokens_per_second: 21_000 * 8 };
  policy.reset({ taskId: 'own', seed: 1 });
  assert.equal(act(work).replicas, 8);
  policy.reset({ taskId: 'own', seed: 1 });
  const { replicas, second_replicas } = act({ ...work, ...priced });
  assert.deepEqual([replicas, second_replicas], [4, 5]);
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

/** Base 10 ms, 20 us a token, 50 us a sequence, 50 ns a context token; TPOT within 30 ms. */
const server = {
  ...calm.server,
  ...{ step_base_ms: 10, step_token_us: 20, step_sequence_us: 50, step_context_ns: 50 },
  ...{ tpot_objective_ms: 30, kv_cache_tokens: 1_000_000 },
};
/** 40 requests a second of 1,000 and 200 tokens. */
const load: Partial<FleetObservation> = {
  server,
  arrived_prompt_tokens_per_second: 40_000,
  prefix_cache_hit_rate: 0,
  request_generation_tokens_mean: 200,
  interactive: { ...calm.interactive, arrivals_per_second: 40 },
};

test('the SLA planner adds prefill and decode at the profiled throughput, and corrects it by what it sees', () => {
  // Prefill 40,000 x 20 us = 0.8. A sequence takes 50 + 50 x 1,100 / 1,000 = 105 us, so that 190.5 fit into 30 ms and give
  // 6,349 tokens a second: 8,000 of them are 1.26. Together 2.06.
  assert.deepEqual(replicasOf('sla-planner', [load]), [3]);
  // 400 requests on 4 replicas should take 20.5 ms; 41 ms are twice that. 47.6 sequences in 15 ms give 3,175: 0.8 + 2.52.
  const slow = { ...load, num_requests_running: 400, inter_token_latency_seconds_p50: 0.041 };
  assert.deepEqual(replicasOf('sla-planner', [slow]), [4]);
  assert.deepEqual(replicasOf('sla-planner', [{ ...slow, prefix_cache_hit_rate: 0.5 }]), [3]);
  assert.deepEqual(replicasOf('sla-planner', [{ ...slow, replicas_starting: 1 }], 2), [2]);
});

test('p-pas takes the small budget while two prompts a replica are prefilled or wait, and something runs', () => {
  const budget = (window: Partial<FleetObservation>) => {
    const step = {
      observation: { ...calm, server, replicas_ready: 2, ...window },
      previousAction: task.defaultAction,
    };
    return createFleetPolicy('p-pas').act({ ...step, reward: 0, stepIndex: 1 }).max_num_batched_tokens;
  };
  assert.equal(budget({ num_requests_waiting: 3, num_requests_running: 10 }), 16_384);
  // 60,000 tokens a second x 20 us: 1.2 prompts being prefilled.
  const more = { num_requests_waiting: 3, prompt_tokens_per_second: 60_000 };
  assert.equal(budget({ ...more, num_requests_running: 10 }), 2048);
  assert.equal(budget({ ...more, num_requests_running: 0 }), 16_384);
});

test('prefix-router scales as hpa does, and earns more than it where conversations go on', () => {
  const agents = { ...fleet.tasks.shipped.agents, windows: 40, defaultAction: task.defaultAction };
  const earned = (spec: string) => {
    const episode = new FleetEpisode(agents, 5);
    const policy = createFleetPolicy(spec);
    policy.reset({ taskId: 'own', seed: 5 });
    while (!episode.done) {
      const { window: stepIndex, action: previousAction } = episode;
      episode.step(
        policy.act({ observation: episode.observation(), previousAction, reward: null, stepIndex }),
      );
    }
    return episode.totals.reward;
  };
  assert.deepEqual(replicasOf('prefix-router:40', [running(200)]), [5]);
  const routed = earned('prefix-router:8');
  const leastLoaded = earned('hpa:8');
  assert.ok(routed > leastLoaded, `${routed} ${leastLoaded}`);
});

test('each policy plays an episode, and another name is refused with those that there are', () => {
  for (const { name } of FLEET_POLICIES) {
    const episode = new FleetEpisode({ ...fleet.tasks.shipped.flash_crowds, windows: 6 }, 3);
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
