import {
  type GymAction,
  GymEpisode,
  type GymTask,
  type GymWorld,
  inferencegym,
} from '@servegym/environments';
import type { CheckedEpisode, CheckedTask, KnobValues } from '../core/checks/checked-task.ts';

/** Figures of an episode: means over the steps, but for `cost` (US cents), `preempted` (for each request served) and `outOfMemory`. */
export type GymFigure =
  | 'queueDepth'
  | 'ttftMs'
  | 'tpotMs'
  | 'kvOccupancy'
  | 'violationRate'
  | 'memoryGb'
  | 'tokensPerSecond'
  | 'cost'
  | 'preempted'
  | 'outOfMemory';

/** A task of `inferencegym` on a table as checks play it. A step is a window. */
export function checkedGym(world: GymWorld, task: GymTask): CheckedTask<GymAction, GymFigure> {
  return {
    ...{ id: task.id, difficulty: task.difficulty },
    ...{
      windows: inferencegym.episodeSteps,
      defaultAction: inferencegym.defaultAction,
      knobs: gymKnobs(task),
    },
    start: (seed) => startEpisode(world, task, seed),
    play: (seed, actionOf) => playGym(world, task, seed, actionOf),
    grade: async (seed, actions) => {
      const { score } = await inferencegym.grade(
        { reset: { task_id: task.id, seed }, actions },
        { table: { world } },
      );
      return { score, worth: score };
    },
    scaled: (factor) => checkedGym(world, scaleGymArrivals(task, factor)),
  };
}

function startEpisode(
  world: GymWorld,
  task: GymTask,
  seed: number,
  past: readonly GymAction[] = [],
): CheckedEpisode<GymAction> {
  const episode = new GymEpisode(task, seed, world);
  for (const action of past) episode.step(action);
  const played = [...past];
  return {
    get done() {
      return episode.done;
    },
    get window() {
      return episode.timestep;
    },
    step(action) {
      played.push(action);
      return episode.step(action);
    },
    observation: () => episode.observation(),
    unaccounted() {
      const { arrived, served, failed, rejected } = episode.totals;
      return arrived - served - failed - rejected - episode.queueDepth;
    },
    fork() {
      const until = [...played];
      return () => startEpisode(world, task, seed, until);
    },
  };
}

const KNOBS: readonly KnobValues<GymAction>[] = [
  {
    knob: 'batch_size',
    bins: [
      { name: '1-8', values: [2, 4, 8] },
      { name: '9-64', values: [16, 24, 32, 48, 64] },
      { name: '65-512', values: [96, 128, 192, 256, 384, 512] },
    ],
  },
  {
    knob: 'kv_budget',
    bins: [
      { name: '0.1-0.4', values: [0.1, 0.15, 0.2, 0.3, 0.4] },
      { name: '0.4-0.7', values: [0.5, 0.6, 0.7] },
      { name: '0.7-1', values: [0.8, 0.9, 1] },
    ],
  },
  {
    knob: 'spec_length',
    bins: inferencegym.bins.spec_length.map((depth) => ({ name: `${depth}`, values: [depth] })),
  },
  {
    knob: 'prefill_disagg',
    bins: [
      { name: 'mixed', values: [false] },
      { name: 'split', values: [true] },
    ],
  },
  {
    knob: 'quant_tier',
    bins: [
      { name: 'FP16', values: [0] },
      { name: 'INT8', values: [1] },
      { name: 'INT4', values: [2] },
    ],
  },
];

/** Values of the knobs that act in a task. The thirds of `batch_size` are on a logarithmic scale. */
function gymKnobs({ activeKnobs }: GymTask): readonly KnobValues<GymAction>[] {
  return KNOBS.filter(({ knob }) => activeKnobs.includes(knob));
}

/** Plays an episode to its end and looks at every step. */
function playGym(
  world: GymWorld,
  task: GymTask,
  seed: number,
  actionOf: (step: number) => GymAction,
): Readonly<Record<GymFigure, number>> {
  const episode = new GymEpisode(task, seed, world);
  const sums = { queueDepth: 0, tpotMs: 0, kvOccupancy: 0, memoryGb: 0 };
  let preemptions = 0;
  while (!episode.done) {
    episode.step(actionOf(episode.timestep));
    const { queue_depth, tpot_p50, kv_cache_occupancy, gpu_memory_used_gb } = episode.observation();
    sums.queueDepth += queue_depth;
    sums.tpotMs += tpot_p50;
    sums.kvOccupancy += kv_cache_occupancy;
    sums.memoryGb += gpu_memory_used_gb;
    preemptions += episode.metrics.eviction_events;
  }
  const { totals, timestep: steps } = episode;
  return {
    queueDepth: sums.queueDepth / steps,
    ttftMs: totals.ttftMs / steps,
    tpotMs: sums.tpotMs / steps,
    kvOccupancy: sums.kvOccupancy / steps,
    violationRate: totals.violationRate / steps,
    memoryGb: sums.memoryGb / steps,
    tokensPerSecond: totals.outputTokens / steps,
    cost: totals.cost,
    preempted: totals.served === 0 ? 0 : preemptions / totals.served,
    outOfMemory: totals.oomEvents,
  };
}

/** The task with its arrivals at another rate, bursts included. */
function scaleGymArrivals(task: GymTask, factor: number): GymTask {
  return {
    ...task,
    arrivalRate: task.arrivalRate * factor,
    bursts: task.bursts && { ...task.bursts, rate: task.bursts.rate * factor },
  };
}
