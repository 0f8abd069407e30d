import { deserialize, serialize } from 'node:v8';
import type { JobContext, JobEngine, JobKinds, Json } from '@servegym/jobs';
import type { EngineProfile } from '@servegym/simulator';
import { blockResamples } from '@servegym/simulator/statistics';
import type { NearestMiss, Replicas } from '../tune/tune-result.ts';
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

/** Input of the job: each choice is measured at given loads, or at those that bracket what it sustains. */
interface EvaluationInput {
  readonly profiles: readonly EngineProfile[];
  readonly slo: readonly SloTerm[];
  /** Name of the shared traffic. */
  readonly traffic: string;
  /** Seed of the acceptance draws. */
  readonly seed: number;
  readonly choices: readonly (Omit<EvaluatedChoice, 'profile'> & { readonly profile: number })[];
  readonly engines: EvaluatedEngines;
}

/** An engine with its settings. */
export interface EngineChoice {
  readonly profile: EngineProfile;
  readonly candidate: Candidate;
}

/** Engines that serve the traffic together. */
type EvaluatedEngines = Pick<ServedLoad, 'replicas' | 'router' | 'second'>;

export interface EvaluatedChoice extends EngineChoice {
  /** Loads to measure at. */
  readonly loads?: readonly number[];
  /** Search for the sustained load. */
  readonly search?: LoadSearch;
}

/** The points of each choice, in order of load. */
type Evaluations = readonly (readonly LoadPoint[])[];

/** Traffic that this thread has decoded. */
const decoded = new Map<string, Traffic>();
const MOST_DECODED = 8;

/** The job `evaluate`: simulates choices, all on the same traffic with the same draws. */
export function runJob(input: Json, context: JobContext): Json {
  const { profiles, slo, traffic: name, seed, choices, engines } = input as unknown as EvaluationInput;
  const traffic = trafficOf(name, context);
  const results = choices.map(({ profile, candidate, loads = [], search }, i) => {
    const measure = (load: number) =>
      measureLoad(profiles[profile], candidate, traffic, slo, { load, seed, ...engines });
    const found = search === undefined ? [] : findSustainedLoad(measure, slo, search);
    const points = [...found, ...loads.map(measure)].sort((a, b) => a.load - b.load);
    context.report((i + 1) / choices.length);
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

/** Choices that are tried when the SLO may be impossible. */
const LAST_RESORT = 60;

/** Jobs for each that can run at once: enough that the last ones end together. */
const JOBS_EACH = 6;
const MOST_PER_JOB = 32;

/** Added to the seed where the held-out traffic is served, so that no chance is shared with the search. */
const HELD_OUT_SEED = 7919;

/** Engines, and the seed of their draws, by default the evaluator's. */
export type EvaluatedWith = EvaluatedEngines & { readonly seed?: number };

/** A choice with the largest load at which the SLO holds on it, times the rate of the traffic. */
export interface SustainedLoad extends EngineChoice {
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

/** Has choices measured under an SLO by a job engine. */
export class Evaluator {
  readonly slo: readonly SloTerm[];
  /** Seed of the acceptance of draft tokens and of the bootstrap. */
  readonly seed: number;
  readonly #jobs: JobEngine;
  readonly #onShare: (share: number) => void;
  readonly #names = new Map<Traffic, Promise<string>>();
  /** Requests that have been simulated. */
  simulatedRequests = 0;
  /** Simulations that were run. */
  simulations = 0;

  constructor(
    jobs: JobEngine,
    { slo, seed }: { readonly slo: readonly SloTerm[]; readonly seed: number },
    onShare: (share: number) => void = () => undefined,
  ) {
    this.slo = slo;
    this.seed = seed;
    this.#jobs = jobs;
    this.#onShare = onShare;
  }

  get heldOutSeed(): number {
    return this.seed + HELD_OUT_SEED;
  }

  /** The points of each choice, in the order of the choices. */
  async measure(
    traffic: Traffic,
    choices: readonly EvaluatedChoice[],
    { seed = this.seed, ...engines }: EvaluatedWith = {},
  ): Promise<LoadPoint[][]> {
    const name = await this.#nameOf(traffic);
    const size = Math.min(
      MOST_PER_JOB,
      Math.max(1, Math.ceil(choices.length / (JOBS_EACH * this.#jobs.width))),
    );
    const chunks = Array.from({ length: Math.ceil(choices.length / size) }, (_, i) =>
      choices.slice(i * size, (i + 1) * size),
    );
    const { slo } = this;
    const results = await this.#jobs.run(
      chunks.map((chunk) => {
        const profiles = [...new Set(chunk.map(({ profile }) => profile))];
        const placed = chunk.map((choice) => ({ ...choice, profile: profiles.indexOf(choice.profile) }));
        const input: EvaluationInput = { profiles, slo, traffic: name, seed, choices: placed, engines };
        return { kind: 'evaluate', input: input as unknown as Json, shared: [name] };
      }),
      { onProgress: ({ share }) => this.#onShare(share) },
    );
    const points = results.flatMap((result) => result as unknown as Evaluations).map((each) => [...each]);
    for (const each of points) {
      this.simulations += each.length;
      this.simulatedRequests += each.length * traffic.trace.arrivalMs.length;
    }
    return points;
  }

  /** The point of one choice at one load. */
  async at(
    traffic: Traffic,
    { profile, candidate }: EngineChoice,
    load: number,
    how?: EvaluatedWith,
  ): Promise<LoadPoint> {
    const [[point]] = await this.measure(traffic, [{ profile, candidate, loads: [load] }], how);
    return point;
  }

  /** The loads that choices sustain, as near as what was measured tells. */
  async sustained(
    traffic: Traffic,
    choices: readonly EvaluatedChoice[],
    how?: EvaluatedWith,
  ): Promise<SustainedLoad[]> {
    const points = await this.measure(traffic, choices, how);
    return choices.map(({ profile, candidate }, i) => ({
      ...{ profile, candidate, points: points[i] },
      load: sustainedLoad(points[i], this.slo),
    }));
  }

  /** The loads that choices sustain, with a bootstrap over blocks: looked for, then measured at steps around what was found. */
  async closely(
    traffic: Traffic,
    choices: readonly EvaluatedChoice[],
    { steps, ...how }: EvaluatedWith & { readonly steps: readonly number[] },
  ): Promise<CloseLoad[]> {
    const rough = await this.sustained(traffic, choices, how);
    const around = await this.measure(
      traffic,
      rough.map(({ profile, candidate, load }) => ({
        ...{ profile, candidate },
        loads: load === 0 ? [] : steps.map((step) => step * load),
      })),
      how,
    );
    const resamples = blockResamples(traffic.blockStarts.length - 1, how.seed ?? this.seed);
    return rough.map(({ profile, candidate, points: found }, i) => {
      const points = [...found, ...around[i]].sort((a, b) => a.load - b.load);
      const rate = (weights?: ArrayLike<number>) => sustainedRate(points, traffic, this.slo, weights);
      const load = sustainedLoad(points, this.slo);
      return { profile, candidate, points, load, sustained: rate(), draws: resamples.map(rate) };
    });
  }

  /** What comes nearest to an SLO that nothing meets, at a load so low that requests hardly meet, or on so many engines at 1. */
  async nearest(
    traffic: Traffic,
    tried: readonly EngineChoice[],
    engines?: number,
  ): Promise<NearestMiss & Pick<EngineChoice, 'profile'>> {
    const load = engines === undefined ? LEAST_LOAD : 1;
    const choices = tried
      .slice(0, LAST_RESORT)
      .map(({ profile, candidate }) => ({ profile, candidate, loads: [load] }));
    const points = await this.measure(traffic, choices, { replicas: engines });
    const found = points.map(([{ values }], i) => ({
      ...{ profile: choices[i].profile, settings: choices[i].candidate, load },
      valuesMs: Object.fromEntries(this.slo.map((term, t) => [sloTermName(term), values[t]])),
      timesLimit: Math.max(...this.slo.map(({ limitMs }, t) => values[t] / limitMs)),
    }));
    return found.reduce((best, each) => (each.timesLimit < best.timesLimit ? each : best));
  }

  #nameOf(traffic: Traffic): Promise<string> {
    const known = this.#names.get(traffic);
    if (known !== undefined) return known;
    const name = this.#jobs.share(serialize(traffic));
    this.#names.set(traffic, name);
    return name;
  }
}

/** The job kind that `plan` and `tune` submit, with its module. */
export const TUNE_JOB_KINDS: JobKinds = {
  evaluate: import.meta.url,
};

/** Factor on the traffic of a surge. */
export const SURGE = 1.5;

/**
 * The fewest engines with which the whole traffic, at a load, meets the SLO.
 * @param engine what is expected of one before several are tried, `sustained` on traffic that the search has not seen
 */
export async function fewestThatHold(
  evaluator: Evaluator,
  whole: Traffic,
  engine: Pick<CloseLoad, 'profile' | 'candidate' | 'load' | 'sustained'>,
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
    point = await evaluator.at(whole, engine, load, { replicas, ...how });
    if (sloUse(point, evaluator.slo) > 1) continue;
    return {
      load,
      replicas,
      good: goodShare(point),
      usdPerHour: replicas * engineUsd(engine.profile),
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
