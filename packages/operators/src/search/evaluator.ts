import { deserialize, serialize } from 'node:v8';
import type { JobContext, JobEngine, JobKinds, Json } from '@servegym/jobs';
import type { EngineProfile } from '@servegym/simulator';
import { blockResamples } from '@servegym/simulator/statistics';
import type { NearestMiss, Replicas } from '../tune/tune-result.ts';
import { type Autoscaled, type AutoscaledInput, serveAutoscaled } from './autoscaled.ts';
import { type Candidate, engineUsd, fewestEngines, splitParts } from './candidate.ts';
import { type EvaluationRecord, evaluationKey } from './evaluation-record.ts';
import { goodShare, type LoadPoint, measureLoad, type ServedLoad, sloUse } from './load-point.ts';
import type { RouterChoice } from './search-space.ts';
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

export interface EngineChoice {
  readonly profile: EngineProfile;
  readonly candidate: Candidate;
}

type EvaluatedEngines = Pick<ServedLoad, 'replicas' | 'router'>;

export interface EvaluatedChoice extends EngineChoice {
  readonly loads?: readonly number[];
  readonly search?: LoadSearch;
}

/** The points of each choice, in order of load. */
type Evaluations = readonly (readonly LoadPoint[])[];

/** Traffic that this thread has decoded. */
const decoded = new Map<string, Traffic>();
const MOST_DECODED = 8;

/** The job `evaluate`, of an autoscaler or of choices at loads. */
export function runJob(input: Json, context: JobContext): Json {
  if (!('autoscaler' in (input as object))) return evaluate(input as unknown as EvaluationInput, context);
  const { traffic, slo, profile, candidate, ...how } = input as unknown as AutoscaledInput;
  return asJson([serveAutoscaled({ profile, candidate }, trafficOf(traffic, context).trace, slo, how)]);
}

/** Simulates choices, all on the same traffic with the same draws. */
function evaluate(
  { profiles, slo, traffic: name, seed, choices, engines }: EvaluationInput,
  context: JobContext,
): Json {
  const traffic = trafficOf(name, context);
  const results = choices.map(({ profile, candidate, loads = [], search }, i) => {
    const measure = (load: number) =>
      measureLoad(profiles[profile], candidate, traffic, slo, { load, seed, ...engines });
    const found = search === undefined ? [] : findSustainedLoad(measure, slo, search);
    const points = [...found, ...loads.map(measure)].sort((a, b) => a.load - b.load);
    context.report((i + 1) / choices.length);
    return points;
  });
  return asJson(results);
}

function asJson(value: object): Json {
  return value as unknown as Json;
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

export interface EvaluatorOptions {
  readonly slo: readonly SloTerm[];
  readonly seed: number;
  /** Evaluations that are not to be done again, and where those that are done are kept. */
  readonly record?: EvaluationRecord | undefined;
}

/** Has choices measured under an SLO by a job engine. */
export class Evaluator {
  readonly slo: readonly SloTerm[];
  /** Seed of the acceptance of draft tokens and of the bootstrap. */
  readonly seed: number;
  readonly #jobs: JobEngine;
  readonly #onShare: (share: number) => void;
  readonly #names = new Map<Traffic, Promise<string>>();
  readonly #record: EvaluationRecord | undefined;
  simulatedRequests = 0;
  simulations = 0;

  constructor(
    jobs: JobEngine,
    { slo, seed, record }: EvaluatorOptions,
    onShare: (share: number) => void = () => undefined,
  ) {
    this.slo = slo;
    this.seed = seed;
    this.#jobs = jobs;
    this.#record = record;
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
    const { slo } = this;
    const results = await this.#results(name, choices.length, MOST_PER_JOB, {
      known: (i) => asJson([choices[i], { slo, name, seed, engines }]),
      input(chunk) {
        const own = chunk.map((i) => choices[i]);
        const profiles = [...new Set(own.map(({ profile }) => profile))];
        const placed = own.map((choice) => ({ ...choice, profile: profiles.indexOf(choice.profile) }));
        const input: EvaluationInput = { profiles, slo, traffic: name, seed, choices: placed, engines };
        return asJson(input);
      },
    });
    const points = (results as unknown as Evaluations).map((each) => [...each]);
    this.#count(traffic, points.flat().length);
    return points;
  }

  #count({ trace }: Traffic, simulations: number): void {
    this.simulations += simulations;
    this.simulatedRequests += simulations * trace.arrivalMs.length;
  }

  /** Results of so many evaluations, in their order: those that the record has, and the others from jobs. */
  async #results(
    traffic: string,
    count: number,
    mostPerJob: number,
    of: {
      /** What an evaluation is known by. */
      readonly known: (i: number) => Json;
      readonly input: (chunk: readonly number[]) => Json;
    },
  ): Promise<readonly Json[]> {
    const record = this.#record;
    const all = Array.from({ length: count }, (_, i) => i);
    const keys = record && all.map((i) => evaluationKey(of.known(i)));
    const results = all.map((i) => record?.get(keys![i]));
    const missing = all.filter((i) => results[i] === undefined);
    const share = Math.ceil(missing.length / (JOBS_EACH * this.#jobs.width));
    const size = Math.min(mostPerJob, Math.max(1, share));
    const chunks = Array.from({ length: Math.ceil(missing.length / size) }, (_, i) =>
      missing.slice(i * size, (i + 1) * size),
    );
    await this.#jobs.run(
      chunks.map((chunk) => ({ kind: 'evaluate', input: of.input(chunk), shared: [traffic] })),
      {
        onProgress: ({ share }) => this.#onShare(share),
        onResult: (result, at) => {
          for (const [place, i] of chunks[at].entries()) results[i] = (result as readonly Json[])[place];
          record?.add(chunks[at].map((i) => [keys![i], results[i]!] as const));
        },
      },
    );
    return results as readonly Json[];
  }

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
    const near = rough.map(({ profile, candidate, load }) => ({
      ...{ profile, candidate, loads: load === 0 ? [] : steps.map((step) => step * load) },
    }));
    const around = await this.measure(traffic, near, how);
    const resamples = blockResamples(traffic.blockStarts.length - 1, how.seed ?? this.seed);
    return rough.map(({ profile, candidate, points: found }, i) => {
      const points = [...found, ...around[i]].sort((a, b) => a.load - b.load);
      const rate = (weights?: ArrayLike<number>) => sustainedRate(points, traffic, this.slo, weights);
      const load = sustainedLoad(points, this.slo);
      return { profile, candidate, points, load, sustained: rate(), draws: resamples.map(rate) };
    });
  }

  /** What each autoscaler makes of engines and the whole of a trace, as recorded. */
  async autoscaled(
    traffic: Traffic,
    inputs: readonly Omit<AutoscaledInput, 'slo' | 'traffic' | 'seed'>[],
  ): Promise<Autoscaled[]> {
    const name = await this.#nameOf(traffic);
    const { slo, seed } = this;
    const jobs = inputs.map((input) => asJson({ ...input, slo, traffic: name, seed }));
    const results = await this.#results(name, jobs.length, 1, {
      ...{ known: (i) => jobs[i], input: ([i]) => jobs[i] },
    });
    this.#count(traffic, jobs.length);
    return results as unknown as Autoscaled[];
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
    const name = this.#names.get(traffic) ?? this.#jobs.share(serialize(traffic));
    this.#names.set(traffic, name);
    return name;
  }
}

/** The job kind that `plan` and `tune` submit, with its module. */
export const TUNE_JOB_KINDS: JobKinds = { evaluate: import.meta.url };

/** Factor on the traffic of a surge. */
export const SURGE = 1.5;

/** Engines that serve a load, and how the requests are spread over them. */
export type SizedEngines = Replicas & { readonly point: LoadPoint | null; readonly router: RouterChoice };

/**
 * The fewest engines with which the whole traffic, at a load, meets the SLO; of the routers that take as many, the one with
 * the lowest TTFT, and the last where one engine takes all requests.
 * @param engine what is expected of one before several are tried, `sustained` on traffic that the search has not seen
 */
export async function fewestThatHold(
  evaluator: Evaluator,
  whole: Traffic,
  engine: Pick<CloseLoad, 'profile' | 'candidate' | 'load' | 'sustained'>,
  load: number,
  [fewest, most]: readonly [fewest: number, most: number],
  { routers = ['least_loaded'] }: { readonly routers?: readonly RouterChoice[] } = {},
): Promise<SizedEngines> {
  const { profile, candidate } = engine;
  const expected = Math.floor(
    whole.concurrency === undefined ? (load * requestRate(whole)) / engine.sustained : load / engine.load,
  );
  const step = fewestEngines(candidate);
  const entry = candidate.split === false ? 1 : splitParts(candidate.split).prefill;
  const start = step * Math.ceil(Math.min(most, Math.max(fewest, expected)) / step);
  let best: SizedEngines | undefined;
  for (const router of routers) {
    let point: LoadPoint | null = null;
    let good = 0;
    let holds: number | null = null;
    for (let n = start; holds === null && n <= (best?.replicas ?? most); n += step) {
      point = await evaluator.at(whole, engine, load, { replicas: n, router });
      good = goodShare(point);
      if (sloUse(point, evaluator.slo) <= 1) holds = n;
    }
    const isBetter =
      best === undefined ||
      (holds !== null &&
        (best.replicas === null ||
          holds < best.replicas ||
          (holds / step) * entry === 1 ||
          point!.ttftP99Ms < best.point!.ttftP99Ms));
    const usdPerHour = holds === null ? null : holds * engineUsd(profile);
    if (isBetter) best = { load, replicas: holds, good, usdPerHour, point, router };
  }
  return best!;
}

/** The most engines, of so many, that can serve together. */
export function wholeGroups(candidate: Pick<Candidate, 'split'>, most: number): number {
  const fewest = fewestEngines(candidate);
  return fewest * Math.floor(most / fewest);
}
