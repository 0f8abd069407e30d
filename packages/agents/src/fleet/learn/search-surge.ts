import {
  controlledReturn,
  drawFleetRequests,
  FLEET_TASKS,
  type FleetTask,
  type FleetTaskId,
  type RateRuleParameters,
  recordedFleetReference,
  SEED_SPLITS,
  STANDARD_RATE_RULE,
} from '@servegym/environments';
import { mean } from '@servegym/simulator/statistics';
import {
  CrossEntropySearch,
  probabilitiesAround,
  type SearchGeneration,
  type SearchPoint,
} from '../../learning/cross-entropy-search.ts';
import { traceSeed } from '../../learning/trace-schedule.ts';
import {
  SURGE_BINS,
  type SurgeParameters,
  SurgePolicy,
  type SurgeSettings,
} from '../policies/surge-policy.ts';
import type { TrainedSurge } from './surge-file.ts';

/** Policies of a generation, how many of the best the next one goes by, and the part of an episode that each plays. */
const POPULATION = 24;
const ELITE = 6;
const WINDOWS = 120;
const SMOOTHING = 0.4;

export interface SurgeSearchOptions {
  readonly taskId: FleetTaskId;
  /** Windows to play; rounded up to whole generations. */
  readonly steps: number;
  readonly seed: number;
  /** Ends the search after the generation at hand. */
  readonly signal?: AbortSignal;
  readonly onGeneration?: (generation: SearchGeneration) => void;
}

/**
 * Searches the parameters of a `SurgePolicy` with the cross-entropy method on hours of the training split. It begins around
 * the tuned rule of the task. All policies of a generation play the same hour, and every generation another.
 */
export function searchSurge({ taskId, steps, seed, signal, onGeneration }: SurgeSearchOptions): TrainedSurge {
  const task: FleetTask = { ...FLEET_TASKS[taskId], windows: WINDOWS };
  const rule = recordedFleetReference(taskId)?.rule ?? STANDARD_RATE_RULE;
  const settings = ['admissionSeconds', 'tokenBudget'] as const;
  const search = new CrossEntropySearch({
    ...{ seed, population: POPULATION, elite: ELITE, smoothing: SMOOTHING },
    bins: [...settings, ...settings].map((name) =>
      probabilitiesAround(SURGE_BINS[name].indexOf(rule[name] as never), SURGE_BINS[name].length),
    ),
    numbers: coordinates(rule).map(({ from, deviation }) => ({ mean: from, deviation })),
  });
  const schedule = { seed, groupSize: 1, traces: SEED_SPLITS.train };
  let played = 0;
  for (let generation = 0; played < steps && !signal?.aborted; generation++) {
    const points = search.draw();
    const trace = traceSeed(schedule, 0, generation);
    const requests = drawFleetRequests(task, trace);
    const returns = points.map((point) =>
      controlledReturn(task, trace, requests, new SurgePolicy(parametersOf(point))),
    );
    search.learn(points, returns);
    played += POPULATION * WINDOWS;
    onGeneration?.({
      steps: played,
      meanReturn: mean(returns),
      eliteReturn: mean([...returns].sort((a, b) => b - a).slice(0, ELITE)),
    });
  }
  const training = { algorithm: 'cem', steps: played, seed };
  return { taskId, parameters: parametersOf(search.likeliest()), training };
}

/** A continuous coordinate: where it begins, how far apart the first ones are, and the value it stands for. */
interface Coordinate {
  readonly from: number;
  readonly deviation: number;
  readonly value: (number: number) => number;
}

const positive = (number: number) => Math.max(0, number);
const share = (number: number) => Math.max(0, Math.min(1, number));

/** Coordinates in the order of `parametersOf`. */
function coordinates(rule: RateRuleParameters): readonly Coordinate[] {
  const ofSettings: Coordinate[] = [
    { from: 1 - 1 / rule.memoryWindows, deviation: 0.3, value: share },
    { from: 0, deviation: 0.15, value: (number) => Math.max(-0.9, number) },
  ];
  return [
    { from: Math.log(rule.tokensPerReplica), deviation: 0.15, value: Math.exp },
    { from: Math.log(rule.outputWeight), deviation: 0.2, value: Math.exp },
    { from: 0.3, deviation: 0.5, value: positive },
    { from: 0.2, deviation: 0.5, value: positive },
    { from: 0.6, deviation: 0.2, value: share },
    { from: Math.log(Math.max(0.25, rule.prefixWeight)), deviation: 0.4, value: Math.exp },
    ...ofSettings,
    ...ofSettings,
  ];
}

function parametersOf(point: SearchPoint): SurgeParameters {
  const [tokensPerReplica, outputWeight, trend, backlog, behindBelow, prefixWeight, ...rest] = coordinates(
    STANDARD_RATE_RULE,
  ).map(({ value }, i) => value(point.numbers[i]!)) as [
    ...[number, number, number, number, number, number],
    ...number[],
  ];
  const settings = (state: number): SurgeSettings => ({
    decay: rest[2 * state]!,
    headroom: rest[2 * state + 1]!,
    admissionSeconds: SURGE_BINS.admissionSeconds[point.bins[2 * state]!]!,
    tokenBudget: SURGE_BINS.tokenBudget[point.bins[2 * state + 1]!]!,
  });
  return {
    ...{ tokensPerReplica, outputWeight, trend, backlog, behindBelow, prefixWeight },
    ...{ calm: settings(0), behind: settings(1) },
  };
}
