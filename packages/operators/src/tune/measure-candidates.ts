import { deserialize, serialize } from 'node:v8';
import type { JobContext, JobEngine, JobKinds, Json } from '@servegym/jobs';
import type { EngineProfile } from '@servegym/simulator';
import { blockResamples } from '@servegym/simulator/statistics';
import { type Candidate, engineUsd, fewestEngines } from './candidate.ts';
import { goodShare, type LoadPoint, measureLoad, type ServedLoad, sloUse } from './load-point.ts';
import { type SloTerm, sloTermName } from './slo.ts';
import {
  findSustainedLoad,
  LEAST_LOAD,
  type LoadSearch,
  sustainedLoad,
  sustainedRate,
} from './sustained-load.ts';
import { requestRate, type Traffic } from './traffic.ts';
import type { NearestMiss, Replicas } from './tune-result.ts';

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
  const known = decoded.get(name);
  if (known !== undefined) return known;
  const traffic: Traffic = deserialize(context.shared(name));
  if (decoded.size === MOST_DECODED) decoded.clear();
  decoded.set(name, traffic);
  return traffic;
}

/** Candidates that are tried when the SLO may be impossible. */
const LAST_RESORT = 60;

/** Jobs for each that can run at once: enough that the last ones end together. */
const JOBS_EACH = 6;
const MOST_PER_JOB = 32;

/** Added to the seed where the held-out traffic is served, so that no chance is shared with the search. */
const HELD_OUT_SEED = 7919;

/** Engines, and the seed of their draws, by default the measurer's. */
export type MeasuredWith = MeasuredEngines & { readonly seed?: number };

/** A candidate with the largest load at which the SLO holds on it, times the rate of the traffic. */
export interface SustainedLoad {
  readonly candidate: Candidate;
  readonly points: readonly LoadPoint[];
  readonly load: number;
}

/** The same, measured closely around that load. */
export interface CloseLoad extends SustainedLoad {
  /** Requests/s at that load. */
  readonly sustained: number;
  /** `sustained` on each resample of the traffic's blocks. */
  readonly draws: readonly number[];
}

/** Has candidates of a profile measured under an SLO by a job engine. */
export class CandidateMeasurer {
  readonly profile: EngineProfile;
  readonly slo: readonly SloTerm[];
  /** Seed of the acceptance of draft tokens and of the bootstrap. */
  readonly seed: number;
  readonly #jobs: JobEngine;
  readonly #onShare: (share: number) => void;
  readonly #names = new Map<Traffic, string>();
  /** Requests that have been simulated. */
  simulatedRequests = 0;
  /** Simulations that were run. */
  simulations = 0;

  constructor(
    jobs: JobEngine,
    profile: EngineProfile,
    { slo, seed }: { readonly slo: readonly SloTerm[]; readonly seed: number },
    onShare: (share: number) => void = () => undefined,
  ) {
    this.profile = profile;
    this.slo = slo;
    this.seed = seed;
    this.#jobs = jobs;
    this.#onShare = onShare;
  }

  get heldOutSeed(): number {
    return this.seed + HELD_OUT_SEED;
  }

  /** The points of each candidate, in the order of the candidates. */
  async measure(
    traffic: Traffic,
    candidates: readonly MeasuredCandidate[],
    { seed = this.seed, ...engines }: MeasuredWith = {},
  ): Promise<LoadPoint[][]> {
    const name = await this.#nameOf(traffic);
    const size = Math.min(
      MOST_PER_JOB,
      Math.max(1, Math.ceil(candidates.length / (JOBS_EACH * this.#jobs.width))),
    );
    const chunks = Array.from({ length: Math.ceil(candidates.length / size) }, (_, i) =>
      candidates.slice(i * size, (i + 1) * size),
    );
    const { profile, slo } = this;
    const results = await this.#jobs.run(
      chunks.map((chunk) => {
        const input: MeasureInput = { profile, slo, traffic: name, seed, candidates: chunk, engines };
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

  /** The point of one candidate at one load. */
  async at(traffic: Traffic, candidate: Candidate, load: number, how?: MeasuredWith): Promise<LoadPoint> {
    const [[point]] = await this.measure(traffic, [{ candidate, loads: [load] }], how);
    return point;
  }

  /** The loads that candidates sustain, as near as what was measured tells. */
  async sustained(
    traffic: Traffic,
    candidates: readonly MeasuredCandidate[],
    how?: MeasuredWith,
  ): Promise<SustainedLoad[]> {
    const points = await this.measure(traffic, candidates, how);
    return candidates.map(({ candidate }, i) => ({
      candidate,
      points: points[i],
      load: sustainedLoad(points[i], this.slo),
    }));
  }

  /** The loads that candidates sustain, with a bootstrap over blocks: looked for, then measured at steps around what was found. */
  async closely(
    traffic: Traffic,
    candidates: readonly MeasuredCandidate[],
    { steps, ...how }: MeasuredWith & { readonly steps: readonly number[] },
  ): Promise<CloseLoad[]> {
    const rough = await this.sustained(traffic, candidates, how);
    const around = await this.measure(
      traffic,
      rough.map(({ candidate, load }) => ({
        candidate,
        loads: load === 0 ? [] : steps.map((step) => step * load),
      })),
      how,
    );
    const resamples = blockResamples(traffic.blockStarts.length - 1, how.seed ?? this.seed);
    return rough.map(({ candidate, points: found }, i) => {
      const points = [...found, ...around[i]].sort((a, b) => a.load - b.load);
      const rate = (weights?: ArrayLike<number>) => sustainedRate(points, traffic, this.slo, weights);
      const load = sustainedLoad(points, this.slo);
      return { candidate, points, load, sustained: rate(), draws: resamples.map(rate) };
    });
  }

  /** What comes nearest to an SLO that nothing meets, at a load so low that requests hardly meet, or on so many engines at 1. */
  async nearest(
    traffic: Traffic,
    tried: readonly { readonly candidate: Candidate }[],
    engines?: number,
  ): Promise<NearestMiss> {
    const load = engines === undefined ? LEAST_LOAD : 1;
    const candidates = tried.slice(0, LAST_RESORT).map(({ candidate }) => ({ candidate, loads: [load] }));
    const points = await this.measure(traffic, candidates, { replicas: engines });
    const found = points.map(([{ values }], i) => ({
      ...{ settings: candidates[i].candidate, load },
      valuesMs: Object.fromEntries(this.slo.map((term, t) => [sloTermName(term), values[t]])),
      timesLimit: Math.max(...this.slo.map(({ limitMs }, t) => values[t] / limitMs)),
    }));
    return found.reduce((best, each) => (each.timesLimit < best.timesLimit ? each : best));
  }

  async #nameOf(traffic: Traffic): Promise<string> {
    let name = this.#names.get(traffic);
    if (name === undefined) {
      name = await this.#jobs.share(serialize(traffic));
      this.#names.set(traffic, name);
    }
    return name;
  }
}

/** Job kinds that `tuneProfile` submits, with their modules. */
export const TUNE_JOB_KINDS: JobKinds = {
  'tune-measure': import.meta.url,
};

/** Factor on the traffic of a surge. */
export const SURGE = 1.5;

/**
 * The fewest engines with which the whole traffic, at a load, meets the SLO.
 * @param engine what is expected of one before several are tried, `sustained` on traffic that the search has not seen
 */
export async function fewestThatHold(
  measurer: CandidateMeasurer,
  whole: Traffic,
  engine: Pick<CloseLoad, 'candidate' | 'load' | 'sustained'>,
  load: number,
  [fewest, most]: readonly [fewest: number, most: number],
  how: Pick<ServedLoad, 'router' | 'second'> = {},
): Promise<Replicas & { readonly point: LoadPoint | null }> {
  const { candidate } = engine;
  const expected = Math.floor(
    whole.concurrency === undefined ? (load * requestRate(whole)) / engine.sustained : load / engine.load,
  );
  const step = fewestEngines(candidate);
  const start = step * Math.ceil(Math.min(most, Math.max(fewest, expected)) / step);
  let point: LoadPoint | null = null;
  for (let replicas = start; replicas <= most; replicas += step) {
    point = await measurer.at(whole, candidate, load, { replicas, ...how });
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
