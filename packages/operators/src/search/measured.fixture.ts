import type { JobEngine } from '@servegym/jobs';
import type { Candidate } from './candidate.ts';
import { Evaluator } from './evaluator.ts';
import type { LoadPoint } from './load-point.ts';
import type { SloTerm } from './slo.ts';
import { findSustainedLoad } from './sustained-load.ts';
import type { Traffic } from './traffic.ts';

export const SLO: readonly SloTerm[] = [{ metric: 'ttft', quantile: 0.99, limitMs: 100 }];
const REQUESTS = 500;

/** A traffic of 10 requests/s in so many blocks of 500. */
export function evenTraffic(blocks: number): Traffic {
  const requests = blocks * REQUESTS;
  return {
    blockStarts: Array.from({ length: blocks + 1 }, (_, b) => b * REQUESTS),
    trace: {
      source: 'even.csv',
      arrivalMs: Float64Array.from({ length: requests }, (_, i) => 100 * i),
      inputTokens: new Int32Array(requests).fill(100),
      outputTokens: new Int32Array(requests).fill(50),
    },
  };
}

/** A point of settings under which block b sustains the load `capacities[b]`: violations grow with its fourth power. */
export function pointAt(
  capacities: readonly number[],
  load: number,
  changes: Partial<LoadPoint> = {},
): LoadPoint {
  const requests = capacities.map(() => REQUESTS);
  const excess = capacities.map((capacity) => Math.min(REQUESTS, 5 * (load / capacity) ** 4));
  const good = excess.map((each) => (REQUESTS - each) / 2);
  const ms = 100 * (load / Math.max(...capacities));
  return {
    ...{
      load,
      rate: 10 * load,
      requests,
      classRequests: [null],
      excess: [excess],
      goodEven: good,
      goodOdd: good,
    },
    ...{ ttftP99Ms: ms, tpotP99Ms: ms, values: [ms] },
    ...changes,
  };
}

/** An evaluator of `SLO` whose points come from `measure`. */
export function evaluatorOf(measure: Evaluator['measure']): Evaluator {
  return Object.assign(new Evaluator({} as JobEngine, { slo: SLO, seed: 1 }), { measure });
}

/**
 * Measures by `capacitiesOf` what each block of a traffic sustains under a candidate; `rateOf` tells the requests/s that are
 * served at a load.
 */
export function fakeEvaluator(
  capacitiesOf: (candidate: Candidate, traffic: Traffic) => readonly number[],
  rateOf: (candidate: Candidate, load: number) => number = (_, load) => 10 * load,
): Evaluator {
  return evaluatorOf(async (traffic, choices) =>
    choices.map(({ candidate, loads, search }) => {
      const at = (load: number) =>
        pointAt(capacitiesOf(candidate, traffic), load, { rate: rateOf(candidate, load) });
      return search === undefined ? loads!.map(at) : findSustainedLoad(at, SLO, search);
    }),
  );
}
