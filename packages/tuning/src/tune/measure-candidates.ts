import type { JobContext, Json } from '@servegym/jobs';
import type { EngineProfile } from '@servegym/simulator';
import type { Candidate } from './candidate.ts';
import { type LoadPoint, measureLoad } from './load-point.ts';
import type { SloTerm } from './slo.ts';
import { findSustainedLoad, type LoadSearch } from './sustained-load.ts';
import { decodeTraffic, type Traffic } from './traffic.ts';

/** What a job measures: each candidate at given loads, or at those that bracket what it sustains. */
export interface MeasureInput {
  readonly profile: EngineProfile;
  readonly slo: readonly SloTerm[];
  /** Name of the shared traffic. */
  readonly traffic: string;
  /** Seed of the acceptance draws. */
  readonly seed: number;
  readonly candidates: readonly MeasuredCandidate[];
  readonly replicas?: number;
}

export interface MeasuredCandidate {
  readonly candidate: Candidate;
  /** Loads to measure at. */
  readonly loads?: readonly number[];
  /** How to look for the sustained load. */
  readonly search?: LoadSearch;
}

/** The points of each candidate, in order of load. */
export type MeasureResult = readonly (readonly LoadPoint[])[];

/** Traffic that this thread has decoded. */
const decoded = new Map<string, Traffic>();
const MOST_DECODED = 8;

/** The job `tune-measure`: simulates candidates, all on the same traffic with the same draws. */
export function runJob(input: Json, context: JobContext): Json {
  const { profile, slo, traffic: name, seed, candidates, replicas } = input as unknown as MeasureInput;
  const traffic = trafficOf(name, context);
  const results = candidates.map(({ candidate, loads = [], search }, i) => {
    const measure = (load: number) => measureLoad(profile, candidate, traffic, slo, { load, seed, replicas });
    const found = search === undefined ? [] : findSustainedLoad(measure, slo, search);
    const points = [...found, ...loads.map(measure)].sort((a, b) => a.load - b.load);
    context.report((i + 1) / candidates.length);
    return points;
  });
  return results as unknown as Json;
}

function trafficOf(name: string, context: JobContext): Traffic {
  let traffic = decoded.get(name);
  if (traffic === undefined) {
    traffic = decodeTraffic(context.shared(name));
    if (decoded.size === MOST_DECODED) decoded.clear();
    decoded.set(name, traffic);
  }
  return traffic;
}
