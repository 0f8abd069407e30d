import { type GymAction, GymEpisode, type GymTask, type GymWorld } from '@servegym/environments';
import { RandomStream } from '@servegym/simulator';
import { gymKnobs, valuesOf, withGymKnob } from './gym-knob-values.ts';

/** What an episode came to. */
export interface PlayedGym {
  readonly return: number;
  /** Means over the steps. */
  readonly queueDepth: number;
  readonly ttftMs: number;
  readonly tpotMs: number;
  readonly kvOccupancy: number;
  readonly violationRate: number;
  readonly memoryGb: number;
  readonly tokensPerSecond: number;
  /** US cents, of the episode. */
  readonly cost: number;
  /** Preemptions for each request served. */
  readonly preempted: number;
  readonly outOfMemory: number;
}

/** Plays an episode to its end and looks at every step. */
export function playGym(
  world: GymWorld,
  task: GymTask,
  seed: number,
  actionOf: (step: number) => GymAction,
): PlayedGym {
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
    return: totals.reward,
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

/** The return of an episode. */
export function gymReturn(
  world: GymWorld,
  task: GymTask,
  seed: number,
  actionOf: (step: number) => GymAction,
): number {
  const episode = new GymEpisode(task, seed, world);
  while (!episode.done) episode.step(actionOf(episode.timestep));
  return episode.totals.reward;
}

/** One figure of the episodes of several seeds, averaged. */
export function meanOfGym(
  seeds: readonly number[],
  play: (seed: number) => PlayedGym,
  figure: keyof PlayedGym,
): number {
  return seeds.reduce((sum, seed) => sum + play(seed)[figure], 0) / seeds.length;
}

/** Turns one active knob to any of its values before every step. */
export function wanderingGymActions(
  task: GymTask,
  seed: number,
  from: GymAction,
): (step: number) => GymAction {
  const draws = new RandomStream(seed, 'check');
  const knobs = gymKnobs(task);
  let action = from;
  return () => {
    const turned = knobs[draws.integer(0, knobs.length - 1)];
    const values = valuesOf(turned);
    action = withGymKnob(action, turned.knob, values[draws.integer(0, values.length - 1)]);
    return action;
  };
}

/** The task with its arrivals at another rate, bursts included. */
export function scaleGymArrivals(task: GymTask, factor: number): GymTask {
  return {
    ...task,
    arrivalRate: task.arrivalRate * factor,
    bursts: task.bursts && { ...task.bursts, rate: task.bursts.rate * factor },
  };
}
