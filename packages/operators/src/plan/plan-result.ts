import { z } from 'zod';
import * as part from '../report/result.ts';
import type { EngineChoice } from '../search/evaluator.ts';
import { router } from '../search/search-space.ts';
import { nearestMiss } from '../tune/tune-result.ts';

const { number } = part;

const confidence = z.object({
  /** high: the profile was measured on an engine; medium: made from kernel tables; low: from data sheets, or drafts are assumed. */
  level: z.enum(['high', 'medium', 'low']),
  /** Error of the profile's times that the intervals allow for, share of the time. */
  profileError: number,
  profileErrorSource: z.string(),
  /** Requests/s that one engine sustains: 95 % interval over blocks of the traffic, widened by the profile's error. */
  sustainedRps: part.interval,
  /** Engines and USD an hour at the ends of that interval. */
  engines: part.interval,
  usdPerHour: part.interval,
});
export type PlanConfidence = z.input<typeof confidence>;

/** Engines of a plan that are alike. */
const pool = z.object({
  role: z.enum(['all', 'prefill', 'decode']),
  profile: part.profile,
  settings: part.settings,
  engines: number,
});
export type PlanPool = z.input<typeof pool>;

/** A way to serve the traffic: engines of one profile, with the best settings found. */
const fleetPlan = z.object({
  /** Engines of the first of `pools`. */
  profile: part.profile,
  settings: part.settings,
  /** Routing of the requests to the engines that take them first. */
  router,
  /** One; two where prefill is split from decode. */
  pools: part.list(pool),
  /** Engines with which the whole traffic meets the SLO, all the time. */
  engines: number,
  gpus: number,
  usdPerHour: number,
  /** Mean over the trace with engines started and stopped with the demand, see `autoscaledEngines`. */
  autoscaledEngines: number,
  autoscaledUsdPerHour: number,
  /**
   * Of the autoscalers that were tried, the one that keeps the SLO on the whole trace with the lowest bill; `null` where none
   * does. Not there where none was tried.
   */
  autoscaler: part.autoscaled.nullish(),
  /** No schedule of any kind on this profile and precision needs less, see `leastUsd`. */
  lowerBoundUsdPerHour: number,
  /** All engines all the time with every GPU board at its power limit; `null` where a limit is not known. */
  kwhPerHourAtMost: number.nullable(),
  kwhPerMillionOutputTokensAtMost: number.nullable(),
  usdPerMillionInputTokens: number,
  usdPerMillionOutputTokens: number,
  /** Requests/s that one engine, on average, sustains under the SLO, on traffic that the search has not seen. */
  sustainedRps: number,
  ttftP99Ms: number,
  tpotP99Ms: number,
  /** Load that these engines sustain over that of the trace. */
  headroom: number,
  /** Share of the requests that meet every limit when 1.5 times the traffic comes. */
  good_at_1_5_times: number,
  /** Bound of the SLO that is exceeded first as the load grows. */
  breaksFirst: z.string().nullable(),
  /** Accuracy relative to FP16. */
  quality: number,
  ...part.basis,
  /** Precisions whose profile says the same of every figure. */
  weightsAlike: part.list(z.string()),
  /** True when no other plan has both fewer USD an hour and a lower TTFT p99. */
  onFront: z.boolean(),
  confidence,
  commands: part.commands,
});
/** Price and TTFT p99 with the autoscaler of a plan, without one with all engines all the time. */
export function servedBy({ autoscaler, usdPerHour, ttftP99Ms }: FleetPlan) {
  return autoscaler ?? { usdPerHour, ttftP99Ms };
}
export type FleetPlan = z.input<typeof fleetPlan>;

/** A plan that misses the SLO by less than the error of its profile. */
const nearPlan = fleetPlan.extend({
  /** That the SLO holds, 0..1, by the error of the profile. */
  chance: number,
});
export type NearPlan = FleetPlan & { readonly chance: number };

/** A profile, with a precision, that gives no plan. */
const refused = z.object({ profile: part.profile, precision: z.string(), reason: z.string() });
export type RefusedProfile = z.input<typeof refused> & {
  readonly tried: readonly EngineChoice[];
  /** Engines that were too few; `undefined` where one request alone misses the SLO. */
  readonly tooFew?: number;
};

const plan = z.object({
  trace: z.string(),
  requests: number,
  /** Requests that were simulated at each load. */
  requestsSimulated: number,
  refused: part.refused,
  hours: number,
  requestsPerS: number,
  slo: part.slo,
  ...part.search,
  simulations: number,
  simulatedRequests: number,
  wallS: number,
  allow: part.list(z.string()),
  /** Plans that assume nothing else, cheapest first. */
  plans: part.list(fleetPlan),
  /** Plans that do, cheapest first. */
  riskier: part.list(fleetPlan),
  /** Where fewer than three plans meet the SLO: those that nearly do, by price over chance. */
  near: part.list(nearPlan),
  notPlanned: part.list(refused),
  /** What comes nearest to the SLO, where nothing meets it. */
  nearest: nearestMiss.extend({ profile: part.profile, engines: number }).nullable(),
});
export type PlanResult = Omit<z.input<typeof plan>, 'plans' | 'riskier' | 'near' | 'notPlanned'> & {
  readonly plans: readonly FleetPlan[];
  readonly riskier: readonly FleetPlan[];
  readonly near: readonly NearPlan[];
  readonly notPlanned: readonly RefusedProfile[];
  readonly inputTokensPerS: number;
  readonly outputTokensPerS: number;
  readonly mostEngines: number;
};

export const fleetPlanJson = part.jsonOf(fleetPlan);
/** The object that `plan --json` prints. Times in ms unless the name says otherwise. */
export const planJson = part.jsonOf(plan);
