import { type Candidate, engineUsd, fewestEngines } from './candidate.ts';
import { goodShare, type LoadPoint, type ServedLoad, sloUse } from './load-point.ts';
import type { CandidateMeasurer } from './measure-candidates.ts';
import { requestRate, type Traffic } from './traffic.ts';
import type { Replicas } from './tune-result.ts';

/** Factor on the traffic of a surge. */
export const SURGE = 1.5;

/** What is expected of one engine before several are tried. */
interface ExpectedEngine {
  readonly candidate: Candidate;
  /** Load that one sustains, times the rate of the traffic. */
  readonly load: number;
  /** The same in requests/s, on traffic that the search has not seen. */
  readonly sustained: number;
}

/** The fewest engines with which the whole traffic, at a load, meets the SLO. */
export async function fewestThatHold(
  measurer: CandidateMeasurer,
  whole: Traffic,
  engine: ExpectedEngine,
  {
    load,
    replicas: [fewest, most],
    router,
    second,
  }: { readonly load: number; readonly replicas: readonly [fewest: number, most: number] } & Pick<
    ServedLoad,
    'router' | 'second'
  >,
): Promise<Replicas & { readonly point: LoadPoint | null }> {
  const { candidate } = engine;
  const expected = Math.floor(
    whole.concurrency === undefined ? (load * requestRate(whole)) / engine.sustained : load / engine.load,
  );
  const step = fewestEngines(candidate);
  const start = step * Math.ceil(Math.min(most, Math.max(fewest, expected)) / step);
  let point: LoadPoint | null = null;
  for (let replicas = start; replicas <= most; replicas += step) {
    point = await measurer.at(whole, candidate, load, { replicas, router, second });
    if (sloUse(point, measurer.slo) > 1) continue;
    return {
      load,
      replicas,
      good: goodShare(point),
      usdPerHour: replicas * engineUsd(measurer.profile),
      point,
    };
  }
  return { load, replicas: null, good: point === null ? 0 : goodShare(point), usdPerHour: null, point };
}

/** The most engines, of so many, that can serve together. */
export function wholeGroups(candidate: Pick<Candidate, 'split'>, most: number): number {
  const fewest = fewestEngines(candidate);
  return fewest * Math.floor(most / fewest);
}
