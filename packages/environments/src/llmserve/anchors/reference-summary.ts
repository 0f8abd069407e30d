import { mean as meanOf, stratifiedBootstrap } from '@servegym/simulator/statistics';
import { splitOfSeed } from '../../splits.ts';
import { drawRequests } from '../requests/episode-requests.ts';
import type { ServeTask } from '../tasks/serve-task.ts';
import type { SeedReturns, TaskReference } from './reference-returns.ts';
import { returnBound } from './return-bound.ts';

/** A mean over seeds with its 95 % interval. */
export interface MeanReturn {
  readonly mean: number;
  readonly ci95: readonly [number, number];
}

/** Figures of a task over its recorded test seeds. */
export interface ReferenceSummary {
  readonly seeds: number;
  readonly default: MeanReturn;
  readonly constant: MeanReturn;
  readonly planner: (MeanReturn & { readonly seeds: number; readonly gain_share: number }) | null;
  readonly clairvoyant: MeanReturn;
  /** (clairvoyant - constant) / (clairvoyant - default). */
  readonly room_to_adapt: number;
  /** A return that no policy can exceed. */
  readonly bound: number;
  /** Bound less clairvoyant. */
  readonly certificate_gap: number;
}

/** Summary of what is recorded of a task. */
export function summarizeReference(task: ServeTask, { seeds }: TaskReference): ReferenceSummary {
  const tested = Object.entries(seeds).filter(([seed]) => splitOfSeed(Number(seed)) === 'test');
  const returns = tested.map(([, each]) => each);
  const standard = meanReturn(returns.map((each) => each.default));
  const constant = meanReturn(returns.map((each) => each.constant));
  const clairvoyant = meanReturn(returns.map((each) => each.clairvoyant));
  const bound = meanOf(tested.map(([seed]) => returnBound(task, drawRequests(task, Number(seed)))));
  return {
    seeds: returns.length,
    default: standard,
    constant,
    planner: plannerSummary(returns),
    clairvoyant,
    room_to_adapt: (clairvoyant.mean - constant.mean) / (clairvoyant.mean - standard.mean),
    bound,
    certificate_gap: bound - clairvoyant.mean,
  };
}

function plannerSummary(returns: readonly SeedReturns[]): ReferenceSummary['planner'] {
  const planned = returns.flatMap(({ planner, constant, clairvoyant }) =>
    planner === undefined ? [] : [{ planner, constant, clairvoyant }],
  );
  if (planned.length === 0) return null;
  const mean = meanReturn(planned.map(({ planner }) => planner));
  const constant = meanOf(planned.map((each) => each.constant));
  const clairvoyant = meanOf(planned.map((each) => each.clairvoyant));
  return {
    ...mean,
    seeds: planned.length,
    gain_share: (mean.mean - constant) / (clairvoyant - constant),
  };
}

function meanReturn(values: readonly number[]): MeanReturn {
  return { mean: meanOf(values), ci95: stratifiedBootstrap([values], meanOf) };
}
