import { z } from 'zod';
import * as part from '../report/result.ts';
import { router } from '../search/search-space.ts';

const { number } = part;

/** Latencies at the reference load, and what the settings cost. */
const figures = {
  ttftP99Ms: number,
  tpotP99Ms: number,
  /** When it serves what it sustains; `null` when it sustains nothing. */
  usdPerMillionOutputTokens: number.nullable(),
  /** Accuracy relative to FP16. */
  quality: number,
};

/** A point of the Pareto plot: settings measured at the reference load on the traffic of the search. */
const frontPoint = z.object({
  settings: part.settings,
  /** Requests/s that one engine sustains under the SLO. */
  sustainedRps: number,
  ...figures,
});
export type FrontPoint = z.input<typeof frontPoint>;

const candidate = z.object({
  settings: part.settings,
  isDefault: z.boolean(),
  ...part.basis,
  onFront: z.boolean(),
  /** Requests/s that one engine sustains under the SLO, on traffic that the search has not seen; its interval has the profile's error. */
  sustainedRps: part.estimate,
  /** The same on the traffic of the search. */
  sustainedRpsSearched: part.estimate,
  /** `sustainedRps` over that of vLLM's defaults; `null` when those sustain nothing. */
  overDefaults: part.estimate.nullable(),
  ...figures,
});
export type TunedCandidate = z.input<typeof candidate>;

/** The whole traffic on the engines that it takes. */
const replicas = z.object({
  /** Times the rate of the traffic as it was given. */
  load: number,
  /** `null` when the most that were allowed are too few. */
  replicas: number.nullable(),
  /** With that many, or with the most allowed: share of the requests that meet every limit. */
  good: number,
  usdPerHour: number.nullable(),
  router,
});
export type Replicas = z.input<typeof replicas>;

const common = z.object({
  profile: part.profile,
  objective: z.enum(['goodput', 'cost', 'latency']),
  slo: part.slo,
  trace: z.string(),
  refused: part.refused,
  requestsSearched: number,
  requestsHeldOut: number,
  /** Of the traffic as it was given, times the rate scale; `null` with a concurrency. */
  requestsPerS: number.nullable(),
  /** Requests or conversations that are kept in flight, times the rate scale. */
  concurrency: number.optional(),
  ...part.search,
  considered: number,
  simulations: number,
  simulatedRequests: number,
  wallS: number,
});

export const nearestMiss = z.object({
  settings: part.settings,
  /** Times the rate of the traffic. */
  load: number,
  /** Value of each term of the SLO there. */
  valuesMs: z.record(z.string(), number),
  /** The largest of them over its limit. */
  timesLimit: number,
});
export type NearestMiss = z.input<typeof nearestMiss>;

const impossible = common.extend({ possible: z.literal(false), nearest: nearestMiss });

const possible = common.extend({
  possible: z.literal(true),
  /** The best first. */
  candidates: part.list(candidate),
  /** Whether the winner sustains on the held-out traffic what the search predicts. */
  confirmed: z.boolean(),
  /** Interval in which that should lie, had the search not deceived itself. */
  predictedRps: part.interval,
  /** Load of one engine for the latencies. */
  referenceRps: number,
  front: part.list(frontPoint),
  deployment: replicas,
  at_1_5_times: replicas.extend({ goodOnSameReplicas: number }),
  /**
   * Of the finalists and the autoscalers that were searched, what keeps the SLO on the whole trace with the lowest bill, on at most
   * `most` engines; `null` where nothing does. Not there where none was tried.
   */
  autoscaled: part.autoscaled.extend({ settings: part.settings, most: number }).nullish(),
  /** Gain of settings that follow the traffic over fixed ones, at one load. */
  controller: z.object({
    /** Times the rate of the traffic. */
    load: number,
    /** Share of the requests that meet every limit, with the settings that are best on the whole. */
    fixed: number,
    /** The same, with the best settings for each block, known beforehand and switched at no cost. */
    clairvoyant: number,
    gain: number,
    interval: part.interval,
  }),
  commands: part.commands,
  /** What the result comes down to, in sentences. */
  verdict: z.object({
    headline: z.string(),
    /** What the winner rests on, and where it assumes something, the best settings that do not. */
    basis: z.string(),
    confirmation: z.string(),
    deployment: z.string(),
    surge: z.string(),
    controller: z.string(),
  }),
});

export type Objective = z.input<typeof common>['objective'];
export type ImpossibleTune = z.input<typeof impossible>;
export type PossibleTune = z.input<typeof possible> & {
  /** Settings that were simulated and are not on the front. */
  readonly others: readonly FrontPoint[];
};
/** Result of tuning one profile. */
export type TuneResult = ImpossibleTune | PossibleTune;

/** The object that `tune --json` prints. Times in ms unless the name says otherwise. */
export const tuneJson = part.jsonOf(z.discriminatedUnion('possible', [impossible, possible]));
