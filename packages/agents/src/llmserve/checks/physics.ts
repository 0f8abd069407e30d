import {
  drawRequests,
  type ServeAction,
  ServeEpisode,
  type ServeTask,
  scaleArrivals,
  servingConfig,
} from '@servegym/environments';
import { Cluster, RandomStream, TICKS_PER_S } from '@servegym/simulator';
import type { CheckEffort, CheckResult } from '../../core/checks/check-result.ts';
import { orderedMeans } from '../../core/checks/ordered-means.ts';
import { withKnob } from '../planning/knob-grid.ts';
import { serveKnobs } from './knob-values.ts';
import { meanOver, playTask } from './play-task.ts';

/** Queue and batch are sampled this often, s. */
const SAMPLE_S = 0.25;
/** Sampled four times a second, the mean of a queue is off by about this share. */
const LITTLE_TOLERANCE = 0.03;

/** Whether the simulation of the task is sound, whatever is done. */
export function checkPhysics(task: ServeTask, effort: CheckEffort): CheckResult[] {
  return [
    conservation(task, effort),
    drained(task, effort),
    littlesLaw(task, effort),
    repeatability(task, effort),
    rateAgainstLatency(task, effort),
    poolAgainstPreemptions(task, effort),
    capAgainstTokenTime(task, effort),
  ];
}

/** Turns every free knob now and then. */
function wanderingActions(task: ServeTask, seed: number): (window: number) => ServeAction {
  const draws = new RandomStream(seed, 'check');
  const knobs = serveKnobs(task);
  let action = task.defaultAction;
  return () => {
    const { knob, bins } = knobs[draws.integer(0, knobs.length - 1)];
    const values = bins.flatMap((bin) => bin.values);
    action = withKnob(action, knob, values[draws.integer(0, values.length - 1)]);
    return action;
  };
}

function conservation(task: ServeTask, { seeds }: CheckEffort): CheckResult {
  let windows = 0;
  let mismatches = 0;
  for (const seed of seeds) {
    for (const actionOf of [() => task.defaultAction, wanderingActions(task, seed)]) {
      const episode = new ServeEpisode(task, seed);
      while (!episode.done) {
        episode.step(actionOf(episode.window));
        windows++;
        if (arrivedIn(episode) !== accountedFor(episode)) mismatches++;
      }
    }
  }
  return {
    id: 'conservation',
    group: 'physics',
    title: 'arrived = finished + refused + running + waiting, after every window',
    outcome: mismatches === 0 ? 'pass' : 'fail',
    figures: { windows, mismatches },
  };
}

function arrivedIn({ requests, window }: ServeEpisode): number {
  return requests.windowStarts[window];
}

function accountedFor({ totals, cluster }: ServeEpisode): number {
  const onTheirWay = cluster.engines.reduce((sum, engine) => sum + engine.futureCount, 0);
  return (
    totals.requestsServed + totals.requestsRejected + cluster.waitingCount + cluster.runningCount + onTheirWay
  );
}

/** After the last arrival the server empties, and every KV block comes back. */
function drained(task: ServeTask, { seeds }: CheckEffort): CheckResult {
  let left = 0;
  let blocks = 0;
  for (const seed of seeds) {
    const actionOf = wanderingActions(task, seed + 1);
    const episode = new ServeEpisode(task, seed);
    while (!episode.done) episode.step(actionOf(episode.window));
    const { cluster } = episode;
    cluster.configure(servingConfig({ ...task.defaultAction, kv_budget_fraction: 1 }), 0);
    cluster.runUntil((task.windows * task.windowSeconds + 100_000) * TICKS_PER_S);
    left += cluster.waitingCount + cluster.runningCount;
    blocks += cluster.kvBlocksUsed;
  }
  return {
    id: 'drained',
    group: 'physics',
    title: 'once nobody comes any more, all is served and all KV blocks are free',
    outcome: left === 0 && blocks === 0 ? 'pass' : 'fail',
    figures: { requests_left: left, blocks_left: blocks },
  };
}

/** L = lambda W: requests in the server, sampled, against arrivals and the times they spent. */
function littlesLaw(task: ServeTask, { seeds }: CheckEffort): CheckResult {
  let worst = 0;
  let shown = { sampled: 0, expected: 0 };
  for (const seed of seeds) {
    const { sampled, expected } = queueLength(task, seed);
    const error = expected === 0 ? 0 : Math.abs(sampled - expected) / Math.max(expected, 1);
    if (error >= worst) {
      worst = error;
      shown = { sampled, expected };
    }
  }
  return {
    id: 'littles_law',
    group: 'physics',
    title: "Little's law: requests in the server = arrival rate x time in the server",
    outcome: worst <= LITTLE_TOLERANCE ? 'pass' : 'fail',
    figures: { sampled: shown.sampled, rate_times_time: shown.expected, error: worst },
  };
}

function queueLength(task: ServeTask, seed: number): { sampled: number; expected: number } {
  const requests = drawRequests(task, seed);
  const episode = new ServeEpisode(task, seed, { requests });
  const cluster = new Cluster(servingConfig(task.defaultAction), {
    profile: episode.profile,
    acceptance: task.acceptance,
    seed,
  });
  const end = task.windows * task.windowSeconds * TICKS_PER_S;
  const waits = new Map<number, number>();
  let samples = 0;
  let inside = 0;
  let timeInside = 0;
  for (let w = 0; w < task.windows; w++) {
    cluster.configure(servingConfig(task.defaultAction), requests.tenantGiB[w]);
    for (let id = requests.windowStarts[w]; id < requests.windowStarts[w + 1]; id++) {
      const arrival = requests.arrivalTicks[id];
      waits.set(id, arrival);
      cluster.submit({
        id,
        arrival,
        input: requests.inputTokens[id],
        output: requests.outputTokens[id],
        priority: requests.classes[id],
      });
    }
    const windowEnd = (w + 1) * task.windowSeconds * TICKS_PER_S;
    for (let at = w * task.windowSeconds * TICKS_PER_S; at < windowEnd; ) {
      at = Math.min(windowEnd, at + SAMPLE_S * TICKS_PER_S);
      cluster.clearLogs();
      cluster.runUntil(at);
      inside += cluster.waitingCount + cluster.runningCount;
      samples++;
      for (const { completions, rejections } of cluster.engines) {
        for (let i = 0; i < completions.count; i++) {
          const id = completions.ids[i];
          timeInside += completions.lastTokens[i] - completions.arrivals[i];
          waits.delete(id);
        }
        for (const id of rejections) waits.delete(id);
      }
    }
  }
  for (const arrival of waits.values()) timeInside += Math.max(0, end - arrival);
  return { sampled: inside / samples, expected: timeInside / end };
}

function repeatability(task: ServeTask, { seeds }: CheckEffort): CheckResult {
  const trajectory = (seed: number, through?: 'snapshots') => {
    const actionOf = wanderingActions(task, seed);
    const episode = new ServeEpisode(task, seed);
    const lines: string[] = [];
    while (!episode.done) {
      if (through && episode.window % 5 === 4) {
        const before = episode.snapshot();
        episode.step(task.defaultAction);
        episode.restore(before);
      }
      lines.push(JSON.stringify([episode.step(actionOf(episode.window)), episode.observation()]));
    }
    return lines.join();
  };
  const [seed] = seeds as readonly [number];
  const first = trajectory(seed);
  const repeated = trajectory(seed) === first;
  const restored = trajectory(seed, 'snapshots') === first;
  const another = trajectory(seed + 1) !== first;
  return {
    id: 'repeatability',
    group: 'physics',
    title: 'the same seed and actions give the same bits, also across snapshots; another seed does not',
    outcome: repeated && restored && another ? 'pass' : 'fail',
    figures: { repeated: `${repeated}`, restored: `${restored}`, another_seed_differs: `${another}` },
  };
}

function rateAgainstLatency(task: ServeTask, { seeds }: CheckEffort): CheckResult {
  const scales = [0.5, 1, 2];
  const latencies = scales.map((scale) => {
    const scaled = scaleArrivals(task, scale);
    return meanOver(seeds, (seed) => playTask(scaled, seed, () => task.defaultAction), 'p99TtftMs');
  });
  return orderedMeans({
    id: 'rate_latency',
    title: 'more arrivals never make the first token come sooner',
    values: latencies,
    names: scales.map((scale) => `p99_ttft_ms at rate x${scale}`),
  });
}

/** A pool that is far too small preempts less again, as it lets few in: it is not looked at. */
function poolAgainstPreemptions(task: ServeTask, { seeds }: CheckEffort): CheckResult {
  const loaded = scaleArrivals(task, 2);
  const alone = {
    ...loaded,
    phases: loaded.phases.map((phase) => ({ ...phase, tenantGiB: [0, 0] as const })),
  };
  const [whole, half] = [1, 0.5].map((pool) => {
    const action = { ...task.defaultAction, batch_cap: 512, kv_budget_fraction: pool };
    return meanOver(seeds, (seed) => playTask(alone, seed, () => action), 'preemptions');
  }) as [number, number];
  return {
    id: 'pool_preemptions',
    group: 'physics',
    title: 'the whole KV pool never preempts more than half of it, at twice the arrivals and without tenants',
    outcome: whole <= half ? 'pass' : 'fail',
    figures: { 'preemptions at pool 1': whole, 'at 0.5': half },
  };
}

function capAgainstTokenTime(task: ServeTask, { seeds }: CheckEffort): CheckResult {
  const caps = [4, 32, 256];
  const loaded = scaleArrivals(task, 2);
  const times = caps.map((cap) => {
    const action = {
      ...task.defaultAction,
      ...{ batch_cap: cap, speculation_depth: 0, kv_budget_fraction: 1 },
    };
    return meanOver(seeds, (seed) => playTask(loaded, seed, () => action), 'p50ItlMs');
  });
  return orderedMeans({
    id: 'cap_token_time',
    title: 'a larger batch never makes the next token come sooner',
    values: times,
    names: caps.map((cap) => `p50_itl_ms at cap ${cap}, rate x2`),
  });
}
