import type { CandidateMeasurer } from './candidate-measurer.ts';
import type { SearchResult } from './search.ts';
import type { SloTerm } from './slo.ts';
import { LEAST_LOAD } from './sustained-load.ts';
import type { Traffic } from './traffic.ts';
import type { Deployment, Impossible } from './tune-result.ts';

/** Candidates that are tried when the SLO may be impossible. */
const LAST_RESORT = 60;

/** What comes nearest to an SLO that nothing meets. */
export async function nearestToSlo(
  measurer: CandidateMeasurer,
  traffic: Traffic,
  { ranked }: SearchResult,
  slo: readonly SloTerm[],
  seed: number,
): Promise<Impossible> {
  const tried = ranked.slice(0, LAST_RESORT);
  const points = await measurer.measure(
    traffic,
    tried.map(({ candidate }) => ({ candidate, loads: [LEAST_LOAD] })),
    { seed },
  );
  const worst = (values: readonly number[]) => Math.max(...slo.map(({ limitMs }, t) => values[t] / limitMs));
  let best = 0;
  for (const [i, [point]] of points.entries()) {
    if (worst(point!.values) < worst(points[best][0].values)) best = i;
  }
  return { candidate: tried[best].candidate, load: LEAST_LOAD, values: points[best][0].values };
}

const NO_DEPLOYMENT: Deployment = { load: 1, replicas: null, good: 0, usdPerHour: null };

/** The parts of a result that there are none of when the SLO is impossible. */
export const NOTHING_FOUND = {
  candidates: [],
  prediction: { low: 0, high: 0 },
  isConfirmed: false,
  referenceRate: 0,
  front: [],
  curves: { winner: [], defaults: [] },
  deployment: NO_DEPLOYMENT,
  surge: NO_DEPLOYMENT,
  surgeWithoutMore: 0,
  controller: { load: 0, fixed: 0, clairvoyant: 0, gain: 0, interval: { low: 0, high: 0 }, blocks: 0 },
} as const;
