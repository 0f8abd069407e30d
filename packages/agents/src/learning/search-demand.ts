import {
  type FleetTask,
  type FleetTaskId,
  fleet,
  type RateRuleParameters,
  SEED_SPLITS,
  STANDARD_RATE_RULE,
} from '@servegym/environments';
import { mean } from '@servegym/simulator/statistics';
import { type DemandParameters, DemandPolicy } from '../policies/demand-policy.ts';
import { CrossEntropySearch, type SearchGeneration, type SearchPoint } from './cross-entropy-search.ts';
import { traceSeed } from './trace-schedule.ts';

/** Policies of a generation, how many of the best the next one goes by, and what each plays. */
const POPULATION = 24;
const ELITE = 6;
const HOURS = 3;
const WINDOWS_PER_HOUR = 120;
const SMOOTHING = 0.5;

export interface DemandSearchOptions {
  readonly taskId: FleetTaskId;
  /** Windows to play; rounded up to whole generations. */
  readonly steps: number;
  readonly seed: number;
  /** Ends the search after the generation at hand. */
  readonly signal?: AbortSignal;
  readonly onGeneration?: (generation: SearchGeneration) => void;
}

/**
 * Searches the parameters of a `DemandPolicy` with the cross-entropy method on hours of the training split. It begins
 * around the tuned rule of the task. All policies of a generation play the same three hours, and every generation others.
 */
export function searchDemand(options: DemandSearchOptions): {
  readonly parameters: DemandParameters;
  readonly steps: number;
} {
  const { taskId, steps, seed, signal, onGeneration } = options;
  const task: FleetTask = { ...fleet.tasks.shipped[taskId], windows: WINDOWS_PER_HOUR };
  const rule = fleet.anchors.reference(taskId)?.rule ?? STANDARD_RATE_RULE;
  const search = new CrossEntropySearch({
    ...{ seed, population: POPULATION, elite: ELITE, smoothing: SMOOTHING, bins: [] },
    numbers: COORDINATES.map(({ start, deviation }) => ({ mean: start(rule), deviation })),
  });
  const schedule = { seed, groupSize: 1, traces: SEED_SPLITS.train };
  let played = 0;
  for (let generation = 0; played < steps && !signal?.aborted; generation++) {
    const points = search.draw();
    const returns = points.map(() => 0);
    for (let hour = 0; hour < HOURS; hour++) {
      const trace = traceSeed(schedule, 0, HOURS * generation + hour);
      const requests = fleet.drawRequests(task, trace);
      for (const [i, point] of points.entries()) {
        returns[i]! +=
          fleet.anchors.controlledReturn(task, trace, requests, new DemandPolicy(parametersOf(point))) /
          HOURS;
      }
    }
    search.learn(points, returns);
    played += POPULATION * HOURS * WINDOWS_PER_HOUR;
    onGeneration?.({
      steps: played,
      meanReturn: mean(returns),
      eliteReturn: mean([...returns].sort((a, b) => b - a).slice(0, ELITE)),
    });
  }
  return { parameters: parametersOf(search.likeliest()), steps: played };
}

/** A coordinate of the search: the parameter it stands for, where it begins, and how far apart the first ones are. */
interface Coordinate {
  readonly parameter: keyof DemandParameters;
  readonly start: (rule: RateRuleParameters) => number;
  readonly deviation: number;
  readonly value: (number: number) => number;
}

const positive = (number: number) => Math.max(0, number);
const share = (number: number) => Math.max(0, Math.min(1, number));

/** Deviations, and starts that the rule does not give, are choices. */
const COORDINATES: readonly Coordinate[] = [
  ofLogarithm('tokensPerReplica', (rule) => rule.tokensPerReplica, 0.15),
  ofLogarithm('outputWeight', (rule) => rule.outputWeight, 0.2),
  { parameter: 'decay', start: (rule) => 1 - 1 / rule.memoryWindows, deviation: 0.3, value: share },
  { parameter: 'surge', start: () => 0.4, deviation: 0.4, value: positive },
  { parameter: 'spareReplicas', start: () => 0.2, deviation: 0.4, value: (number) => number },
  { parameter: 'backlog', start: () => 0.2, deviation: 0.3, value: positive },
  ofLogarithm('admissionSeconds', () => 0.5, 1),
  ofLogarithm('prefixWeight', (rule) => Math.max(0.25, rule.prefixWeight), 0.4),
  // Above that of the rule, which is the least that the environment takes: below it all are the same.
  ofLogarithm('tokenBudget', (rule) => 1.15 * rule.tokenBudget, 0.15),
];

function ofLogarithm(
  parameter: keyof DemandParameters,
  start: (rule: RateRuleParameters) => number,
  deviation: number,
): Coordinate {
  return { parameter, start: (rule) => Math.log(start(rule)), deviation, value: Math.exp };
}

function parametersOf({ numbers }: SearchPoint): DemandParameters {
  return Object.fromEntries(
    COORDINATES.map(({ parameter, value }, i) => [parameter, value(numbers[i]!)]),
  ) as unknown as DemandParameters;
}
