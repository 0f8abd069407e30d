import {
  type FleetTask,
  type FleetTaskId,
  fleet,
  type RateRuleParameters,
  STANDARD_RATE_RULE,
} from '@servegym/environments';
import { type DemandParameters, DemandPolicy } from '../policies/demand-policy.ts';
import { type SearchPoint, type SearchRun, searchPoints } from './cross-entropy-search.ts';

/** Policies of a generation, how many of the best the next one goes by, and what each plays. */
const POPULATION = 24;
const ELITE = 6;
const HOURS = 3;
const WINDOWS_PER_HOUR = 120;
const SMOOTHING = 0.5;

/**
 * Searches the parameters of a `DemandPolicy` with the cross-entropy method on hours of the training split. It begins
 * around the tuned rule of the task. All policies of a generation play the same three hours, and every generation others.
 */
export async function searchDemand(
  taskId: FleetTaskId,
  run: SearchRun,
): Promise<{ readonly parameters: DemandParameters; readonly steps: number }> {
  const task: FleetTask = { ...fleet.tasks.shipped[taskId], windows: WINDOWS_PER_HOUR };
  const rule = fleet.anchors.reference(taskId)?.rule ?? STANDARD_RATE_RULE;
  const { point, steps } = await searchPoints(
    {
      ...{ population: POPULATION, elite: ELITE, smoothing: SMOOTHING, bins: [] },
      numbers: COORDINATES.map(({ start, deviation }) => ({ mean: start(rule), deviation })),
      ...{ traces: HOURS, windows: WINDOWS_PER_HOUR },
      async play(points, traces) {
        const returns = points.map(() => 0);
        for (const trace of traces) {
          const requests = fleet.drawRequests(task, trace);
          for (const [i, each] of points.entries()) {
            const policy = new DemandPolicy(parametersOf(each));
            returns[i]! += fleet.anchors.controlledReturn(task, trace, requests, policy) / HOURS;
          }
        }
        return returns;
      },
    },
    run,
  );
  return { parameters: parametersOf(point), steps };
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
