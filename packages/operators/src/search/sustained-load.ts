import { portableMath } from '@servegym/simulator';
import { type LoadPoint, sloUse } from './load-point.ts';
import type { SloTerm } from './slo.ts';
import { requestRate, type Traffic } from './traffic.ts';

/** Loads below and above which nobody looks, times the rate of the traffic. */
export const LEAST_LOAD = 1 / 32;
export const MOST_LOAD = 256;

/** Below this the share of violations is not told apart on the way to the limit. */
const LEAST_USE = 0.02;

export interface LoadSearch {
  /** First load, times the rate of the traffic. */
  readonly guess: number;
  /** Ratio of one load to the next until one holds and one does not. */
  readonly step: number;
  /** Ratio of the two at which it is near enough. */
  readonly tolerance: number;
  /** Does not look below this load: whoever does not sustain it is out of the question. Default `LEAST_LOAD`. */
  readonly floor?: number;
}

/**
 * Brackets the largest load at which the SLO holds, going up or down from a guess, and then bisects. Answers the points
 * that were looked at, in order of load.
 */
export function findSustainedLoad(
  measure: (load: number) => LoadPoint,
  slo: readonly SloTerm[],
  { guess, step, tolerance, floor = LEAST_LOAD }: LoadSearch,
): LoadPoint[] {
  const points: LoadPoint[] = [];
  let low = 0;
  let high = Number.POSITIVE_INFINITY;
  let load = Math.min(MOST_LOAD, Math.max(floor, guess));
  while (true) {
    const point = measure(load);
    points.push(point);
    if (sloUse(point, slo) <= 1) low = load;
    else high = load;
    if (high / low <= tolerance || low >= MOST_LOAD || high <= floor) break;
    if (low === 0) load = Math.max(floor, high / step);
    else load = high === Number.POSITIVE_INFINITY ? Math.min(MOST_LOAD, low * step) : Math.sqrt(low * high);
  }
  return points.sort((a, b) => a.load - b.load);
}

/**
 * The largest load at which the SLO holds, between measured points by interpolation of the logarithms; 0 when it holds
 * at none. Points are in order of load. What lies beyond the last point is not known: the answer is then its load.
 *
 * @param weights How often each block counts; default once.
 */
export function sustainedLoad(
  points: readonly LoadPoint[],
  slo: readonly SloTerm[],
  weights?: ArrayLike<number>,
): number {
  let below: { load: number; use: number } | undefined;
  for (const point of points) {
    const use = Math.max(LEAST_USE, sloUse(point, slo, weights));
    if (use > 1) {
      if (below === undefined) {
        // There is none when even the least load was too much; else the crossing lies below the first point, the
        // further the more the SLO was exceeded.
        return point.load <= LEAST_LOAD ? 0 : point.load / (1 + portableMath.log(use) / Math.LN10);
      }
      const share = -portableMath.log(below.use) / (portableMath.log(use) - portableMath.log(below.use));
      return below.load * portableMath.pow(point.load / below.load, share);
    }
    below = { load: point.load, use };
  }
  return below?.load ?? 0;
}

/**
 * Requests/s at the largest load at which the SLO holds. Those of traffic with a concurrency are interpolated between
 * the logarithms of what was served at the measured loads.
 */
export function sustainedRate(
  points: readonly LoadPoint[],
  traffic: Traffic,
  slo: readonly SloTerm[],
  weights?: ArrayLike<number>,
): number {
  const load = sustainedLoad(points, slo, weights);
  if (traffic.concurrency === undefined) return requestRate(traffic) * load;
  if (load === 0) return 0;
  const above = points.findIndex((point) => point.load >= load);
  const [low, high] =
    above === -1 ? [points.at(-1)!, points.at(-1)!] : [points[Math.max(0, above - 1)], points[above]];
  // Below the first point the rate falls as the load does.
  if (low.load === high.load) return high.rate * Math.min(1, load / high.load);
  const share = portableMath.log(load / low.load) / portableMath.log(high.load / low.load);
  return low.rate * portableMath.pow(high.rate / low.rate, share);
}
