import type { EngineProfile } from '@servegym/simulator';
import type { Candidate } from './candidate.ts';
import type { CandidateMeasurer } from './candidate-measurer.ts';
import type { Finalist } from './finalists.ts';
import { goodShare, type LoadPoint, sloUse } from './load-point.ts';
import { requestRate, type Traffic } from './traffic.ts';
import type { TuneOptions } from './tune-options.ts';
import type { Deployment } from './tune-result.ts';

/** How many engines the whole traffic takes at a load. */
export async function deployment(
  measurer: CandidateMeasurer,
  profile: EngineProfile,
  whole: Traffic,
  winner: Finalist,
  load: number,
  { slo, seed, replicas: [fewest, most] }: TuneOptions,
): Promise<Deployment> {
  const expected = Math.floor((load * requestRate(whole)) / winner.heldOut.value);
  let good = 0;
  // Pairs take an even number.
  const step = winner.candidate.split ? 2 : 1;
  const start = step * Math.ceil(Math.min(most, Math.max(fewest, expected)) / step);
  for (let replicas = start; replicas <= most; replicas += step) {
    const [points] = await measurer.measure(whole, [{ candidate: winner.candidate, loads: [load] }], {
      seed,
      replicas,
    });
    const [point] = points as [LoadPoint];
    good = goodShare(point);
    if (sloUse(point, slo) <= 1) {
      return { load, replicas, good, usdPerHour: replicas * profile.gpu.count * profile.gpu.usdPerHour };
    }
  }
  return { load, replicas: null, good, usdPerHour: null };
}

/** The most engines that pairs can be made of. */
export function evenFor({ split }: Candidate, most: number): number {
  return split ? 2 * Math.floor(most / 2) : most;
}
