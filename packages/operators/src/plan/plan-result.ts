import type { EngineProfile, RouterPolicy } from '@servegym/simulator';
import type { IntervalEnds } from '@servegym/simulator/statistics';
import type { ServingCommand } from '../deployment/serving-command.ts';
import type { Candidate } from '../tune/candidate.ts';
import type { SloTerm } from '../tune/slo.ts';

/** Confidence in the figures of a plan. */
export interface PlanConfidence {
  /** high: the profile was measured on an engine; medium: made from kernel tables; low: from data sheets. */
  readonly level: 'high' | 'medium' | 'low';
  /** Error of the profile's times that the intervals allow for, share of the time. */
  readonly profileError: number;
  /** Source of `profileError`. */
  readonly profileErrorSource: string;
  /** Requests/s that one engine sustains: 95 % interval over blocks of the traffic, widened by the profile's error. */
  readonly sustained: IntervalEnds;
  /** Engines and USD an hour at the ends of that interval. */
  readonly engines: IntervalEnds;
  readonly usdPerHour: IntervalEnds;
}

/** Engines of a plan that are alike. */
export interface PlanPool {
  /** Part of a request that they serve. */
  readonly role: 'all' | 'prefill' | 'decode';
  readonly profile: EngineProfile;
  readonly settings: Candidate;
  readonly engines: number;
}

/** A way to serve the traffic: engines of one profile, or of two, with the best settings found. */
export interface FleetPlan {
  /** Engines of the first of `pools`. */
  readonly profile: EngineProfile;
  readonly settings: Candidate;
  /** One; two where prefill is split from decode, or where the engines are of two profiles. */
  readonly pools: readonly PlanPool[];
  /** Routing of the requests to the engines that take them first. */
  readonly router: RouterPolicy;
  /**
   * Requests in flight on an engine of the second pool for one on the first, for the router; 1 where they are alike.
   */
  readonly secondWeight: number;
  /** Engines with which the whole traffic meets the SLO, all the time. */
  readonly engines: number;
  readonly gpus: number;
  readonly usdPerHour: number;
  /** Mean over the trace with engines started and stopped with the demand, see `autoscaledEngines`. */
  readonly autoscaledEngines: number;
  readonly autoscaledUsdPerHour: number;
  /** No schedule of any kind on this profile and precision needs less, see `leastEngineSeconds`. */
  readonly lowerBoundUsdPerHour: number;
  /** Power of all engines all the time with every GPU board at its limit, kW; `null` where a limit is not known. */
  readonly mostKw: number | null;
  readonly usdPerMillionInputTokens: number;
  readonly usdPerMillionOutputTokens: number;
  /** Requests/s that one engine, on average, sustains under the SLO, on traffic that the search has not seen. */
  readonly sustained: number;
  readonly ttftP99Ms: number;
  readonly tpotP99Ms: number;
  /** Load that these engines sustain over that of the trace. */
  readonly headroom: number;
  /** Share of the requests that meet every limit when 1.5 times the traffic comes. */
  readonly goodAtSurge: number;
  /** Bound of the SLO that is exceeded first as the load grows. */
  readonly breaksFirst: string | null;
  /** Accuracy relative to FP16. */
  readonly quality: number;
  readonly confidence: PlanConfidence;
  /** True when no other plan has both fewer USD an hour and a lower TTFT p99. */
  readonly onFront: boolean;
  readonly commands: readonly ServingCommand[];
}

/** A profile, with a precision, that gives no plan. */
export interface RefusedProfile {
  readonly profile: EngineProfile;
  readonly precision: string;
  readonly reason: string;
}

export interface PlanResult {
  readonly slo: readonly SloTerm[];
  readonly traffic: {
    readonly source: string;
    readonly requests: number;
    /** Requests that were simulated at each load. */
    readonly sampled: number;
    readonly hours: number;
    /** Mean requests/s, input and output tokens/s. */
    readonly rate: number;
    readonly inputTokensPerS: number;
    readonly outputTokensPerS: number;
  };
  /** Cheapest first. */
  readonly plans: readonly FleetPlan[];
  readonly refused: readonly RefusedProfile[];
  /** Fleets of two profiles that were simulated. */
  readonly mixedTried: number;
  readonly mostEngines: number;
  readonly simulations: number;
  readonly simulatedRequests: number;
  readonly wallS: number;
}
