import type { JobContext, JobEngine, JobKinds, Json } from '@servegym/jobs';
import type { EngineProfile } from '@servegym/simulator';
import type { Candidate } from './candidate.ts';
import { type LoadPoint, measureLoad, type ServedLoad } from './load-point.ts';
import type { SloTerm } from './slo.ts';
import { findSustainedLoad, type LoadSearch } from './sustained-load.ts';
import { decodeTraffic, encodeTraffic, type Traffic } from './traffic.ts';

/** Input of the job: each candidate is measured at given loads, or at those that bracket what it sustains. */
interface MeasureInput {
  readonly profile: EngineProfile;
  readonly slo: readonly SloTerm[];
  /** Name of the shared traffic. */
  readonly traffic: string;
  /** Seed of the acceptance draws. */
  readonly seed: number;
  readonly candidates: readonly MeasuredCandidate[];
  readonly engines: MeasuredEngines;
}

/** Engines that serve the traffic together. */
type MeasuredEngines = Pick<ServedLoad, 'replicas' | 'router' | 'second'>;

export interface MeasuredCandidate {
  readonly candidate: Candidate;
  /** Loads to measure at. */
  readonly loads?: readonly number[];
  /** Search for the sustained load. */
  readonly search?: LoadSearch;
}

/** The points of each candidate, in order of load. */
type MeasureResult = readonly (readonly LoadPoint[])[];

/** Traffic that this thread has decoded. */
const decoded = new Map<string, Traffic>();
const MOST_DECODED = 8;

/** The job `tune-measure`: simulates candidates, all on the same traffic with the same draws. */
export function runJob(input: Json, context: JobContext): Json {
  const { profile, slo, traffic: name, seed, candidates, engines } = input as unknown as MeasureInput;
  const traffic = trafficOf(name, context);
  const results = candidates.map(({ candidate, loads = [], search }, i) => {
    const measure = (load: number) =>
      measureLoad(profile, candidate, traffic, slo, { load, seed, ...engines });
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

/** Jobs for each that can run at once: enough that the last ones end together. */
const JOBS_EACH = 6;
const MOST_PER_JOB = 32;

/** Has candidates measured by a job engine. */
export class CandidateMeasurer {
  readonly #jobs: JobEngine;
  readonly #profile: EngineProfile;
  readonly #slo: readonly SloTerm[];
  readonly #onShare: (share: number) => void;
  readonly #names = new Map<Traffic, string>();
  /** Requests that have been simulated. */
  simulatedRequests = 0;
  /** Simulations that were run. */
  simulations = 0;

  constructor(
    jobs: JobEngine,
    profile: EngineProfile,
    slo: readonly SloTerm[],
    onShare: (share: number) => void = () => undefined,
  ) {
    this.#jobs = jobs;
    this.#profile = profile;
    this.#slo = slo;
    this.#onShare = onShare;
  }

  /** The points of each candidate, in the order of the candidates. */
  async measure(
    traffic: Traffic,
    candidates: readonly MeasuredCandidate[],
    { seed, ...engines }: { readonly seed: number } & MeasuredEngines,
  ): Promise<LoadPoint[][]> {
    const name = await this.#nameOf(traffic);
    const size = Math.min(
      MOST_PER_JOB,
      Math.max(1, Math.ceil(candidates.length / (JOBS_EACH * this.#jobs.width))),
    );
    const chunks = Array.from({ length: Math.ceil(candidates.length / size) }, (_, i) =>
      candidates.slice(i * size, (i + 1) * size),
    );
    const results = await this.#jobs.run(
      chunks.map((chunk) => {
        const input: MeasureInput = {
          ...{ profile: this.#profile, slo: this.#slo, traffic: name, seed, candidates: chunk, engines },
        };
        return { kind: 'tune-measure', input: input as unknown as Json, shared: [name] };
      }),
      { onProgress: ({ share }) => this.#onShare(share) },
    );
    const points = results.flatMap((result) => result as unknown as MeasureResult).map((each) => [...each]);
    for (const each of points) {
      this.simulations += each.length;
      this.simulatedRequests += each.length * traffic.trace.arrivalMs.length;
    }
    return points;
  }

  async #nameOf(traffic: Traffic): Promise<string> {
    let name = this.#names.get(traffic);
    if (name === undefined) {
      name = await this.#jobs.share(encodeTraffic(traffic));
      this.#names.set(traffic, name);
    }
    return name;
  }
}

/** Job kinds that `tuneProfile` submits, with their modules. */
export const TUNE_JOB_KINDS: JobKinds = {
  'tune-measure': import.meta.url,
};
