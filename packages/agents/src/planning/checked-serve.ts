import { llmserve, type ServeAction, ServeEpisode, type ServeTask } from '@servegym/environments';
import type { CheckedEpisode, CheckedTask, KnobValues } from '../core/checks/checked-task.ts';

/** Figures of an episode. Latencies in ms; means over the windows after the first fifth, but for the last two. */
export type ServeFigure =
  | 'queueDepth'
  | 'activeRequests'
  | 'p99TtftMs'
  | 'p50ItlMs'
  | 'kvOccupancy'
  | 'throughputTps'
  | 'sloCompliance'
  | 'violations'
  | 'gpuMemoryGb'
  | 'costPer1k'
  | 'interactiveTtftMs'
  | 'preemptions'
  | 'outOfMemory';

/** A task of `llmserve` as checks play it. It is graded as the task of this id that the process knows. */
export function checkedServe(task: ServeTask): CheckedTask<ServeAction, ServeFigure> {
  const { id, difficulty, windows, defaultAction } = task;
  return {
    ...{ id, difficulty, windows, defaultAction },
    knobs: serveKnobs(task),
    start: (seed) => checkedEpisode(new ServeEpisode(task, seed)),
    play: (seed, actionOf) => playTask(task, seed, actionOf),
    grade: async (seed, actions) => {
      const { score, breakdown } = llmserve.grade({ reset: { task_id: id, seed }, actions });
      return { score, worth: breakdown.return as number };
    },
    scaled: (factor) => checkedServe(llmserve.scaleArrivals(task, factor)),
  };
}

function checkedEpisode(episode: ServeEpisode): CheckedEpisode<ServeAction> {
  return {
    get done() {
      return episode.done;
    },
    get window() {
      return episode.window;
    },
    step: (action) => episode.step(action),
    observation: () => episode.observation(),
    unaccounted() {
      const { requests, window, totals, cluster } = episode;
      const onTheirWay = cluster.engines.reduce((sum, engine) => sum + engine.futureCount, 0);
      const inside = cluster.waitingCount + cluster.runningCount + onTheirWay;
      return requests.windowStarts[window] - totals.requestsServed - totals.requestsRejected - inside;
    },
    fork() {
      const state = episode.snapshot();
      return () => {
        episode.restore(state);
        return checkedEpisode(episode);
      };
    },
  };
}

const KNOBS: readonly KnobValues<ServeAction>[] = [
  {
    knob: 'batch_cap',
    bins: [
      { name: '1-8', values: [2, 4, 8] },
      { name: '9-64', values: [16, 32, 48, 64] },
      { name: '65-512', values: [96, 128, 192, 256, 384, 512] },
    ],
  },
  {
    knob: 'kv_budget_fraction',
    bins: [
      { name: '0.1-0.4', values: [0.1, 0.15, 0.2, 0.3, 0.4] },
      { name: '0.4-0.7', values: [0.5, 0.6, 0.7] },
      { name: '0.7-1', values: [0.8, 0.9, 1] },
    ],
  },
  {
    knob: 'speculation_depth',
    bins: [
      { name: '0-2', values: [0, 1, 2] },
      { name: '3-5', values: [3, 4, 5] },
      { name: '6-8', values: [6, 7, 8] },
    ],
  },
  {
    knob: 'quantization_tier',
    bins: [
      { name: 'FP16', values: ['FP16'] },
      { name: 'INT8', values: ['INT8'] },
      { name: 'INT4', values: ['INT4'] },
    ],
  },
  {
    knob: 'prefill_decode_split',
    bins: [
      { name: 'mixed', values: [false] },
      { name: 'split', values: [true] },
    ],
  },
  {
    knob: 'priority_routing',
    bins: [
      { name: 'fcfs', values: [false] },
      { name: 'priority', values: [true] },
    ],
  },
];

/** Values of the knobs that a task leaves free. The thirds of `batch_cap` are on a logarithmic scale. */
function serveKnobs(task: ServeTask): readonly KnobValues<ServeAction>[] {
  const active = llmserve.activeKnobs(task);
  return KNOBS.filter(({ knob }) => active.includes(knob));
}

/** Windows before this share of the episode are not looked at: a configuration that differs from the default settles in. */
const SETTLED = 0.2;

/** Plays an episode to its end and looks at every window. */
function playTask(
  task: ServeTask,
  seed: number,
  actionOf: (window: number) => ServeAction,
): Readonly<Record<ServeFigure, number>> {
  const episode = new ServeEpisode(task, seed);
  const sums = {
    ...{ queueDepth: 0, activeRequests: 0, p99TtftMs: 0, p50ItlMs: 0, kvOccupancy: 0, throughputTps: 0 },
    ...{ sloCompliance: 0, gpuMemoryGb: 0, costPer1k: 0, interactiveTtftMs: 0 },
  };
  const first = Math.floor(SETTLED * task.windows);
  let outOfMemory = 0;
  while (!episode.done) {
    episode.step(actionOf(episode.window));
    for (const { kind } of episode.cluster.events) if (kind === 'oom') outOfMemory++;
    if (episode.window <= first) continue;
    const seen = episode.observation();
    sums.queueDepth += seen.queue_depth;
    sums.activeRequests += seen.active_requests;
    sums.p99TtftMs += seen.p99_ttft_ms;
    sums.p50ItlMs += seen.p50_itl_ms;
    sums.kvOccupancy += seen.kv_cache_occupancy;
    sums.throughputTps += seen.throughput_tps;
    sums.sloCompliance += seen.slo_compliance_rate;
    sums.gpuMemoryGb += seen.gpu_memory_used_gb;
    sums.costPer1k += seen.estimated_cost_per_1k;
    sums.interactiveTtftMs += episode.metrics.classes[0].ttft.percentile(99);
  }
  const means = Object.fromEntries(
    Object.entries(sums).map(([name, sum]) => [name, sum / (task.windows - first)]),
  ) as typeof sums;
  return {
    ...means,
    violations: 1 - means.sloCompliance,
    preemptions: episode.totals.preemptions,
    outOfMemory,
  };
}
