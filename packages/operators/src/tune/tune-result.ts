import type { EngineProfile } from '@servegym/simulator';
import type { IntervalEnds } from '@servegym/simulator/statistics';
import type { ServingCommand } from '../deployment/serving-command.ts';
import type { Candidate } from './candidate.ts';
import type { ControllerGain } from './controller-gain.ts';
import type { Objective } from './search.ts';
import type { SloTerm } from './slo.ts';

/** A figure with its 95 % interval over blocks of the traffic. */
export interface Estimate {
  readonly value: number;
  readonly interval: IntervalEnds;
}

/** One candidate in the tables. */
export interface TunedCandidate {
  readonly candidate: Candidate;
  readonly isDefault: boolean;
  /** Requests/s that one engine sustains under the SLO, on the traffic of the search. */
  readonly searched: Estimate;
  /** The same on traffic that the search has not seen. */
  readonly heldOut: Estimate;
  /** `heldOut` over that of vLLM's defaults; `null` when those sustain nothing. */
  readonly overDefaults: Estimate | null;
  /** Latencies at the reference load on the held-out traffic, ms. */
  readonly ttftP99Ms: number;
  readonly tpotP99Ms: number;
  /** USD for a million output tokens when it serves what it sustains; `null` when it sustains nothing. */
  readonly usdPerMillionTokens: number | null;
  /** Accuracy relative to FP16. */
  readonly quality: number;
  readonly onFront: boolean;
}

/** A point of the Pareto plot: settings measured at the reference load on the traffic of the search. */
export interface FrontPoint {
  readonly candidate: Candidate;
  /** Requests/s that one engine sustains. */
  readonly sustained: number;
  readonly ttftP99Ms: number;
  readonly tpotP99Ms: number;
  readonly quality: number;
  readonly usdPerMillionTokens: number | null;
  readonly onFront: boolean;
}

/** SLO at a load: share of it used, 1 where it is just met. */
export interface LoadCurvePoint {
  /** Requests/s of one engine. */
  readonly rate: number;
  readonly sloUse: number;
  /** Share of the requests that meet every limit. */
  readonly good: number;
}

/** The whole traffic on the engines that it takes. */
export interface Deployment {
  /** Times the rate of the traffic as it was given. */
  readonly load: number;
  /** `null` when the most that were allowed are too few. */
  readonly replicas: number | null;
  /** With that many, or with the most allowed: share of the requests that meet every limit. */
  readonly good: number;
  readonly usdPerHour: number | null;
}

/** Result of tuning one profile. */
export interface TuneResult {
  readonly profile: EngineProfile;
  readonly objective: Objective;
  readonly slo: readonly SloTerm[];
  readonly traffic: {
    readonly source: string;
    /** Requests that were searched on, and held out. */
    readonly searched: number;
    readonly heldOut: number;
    /** Requests/s of the traffic as it was given, times the rate scale; `null` with a concurrency. */
    readonly rate: number | null;
    /** Requests or conversations that are kept in flight, times the rate scale. */
    readonly concurrency?: number;
  };
  readonly considered: number;
  readonly simulations: number;
  readonly simulatedRequests: number;
  readonly wallS: number;
  /** `null` when some settings meet the SLO. */
  readonly impossible: Impossible | null;
  /** The best first; empty when the SLO is impossible. */
  readonly candidates: readonly TunedCandidate[];
  /** Interval in which `heldOut` of the winner should lie, had the search not deceived itself. */
  readonly prediction: IntervalEnds;
  readonly isConfirmed: boolean;
  /** Load of one engine for the latencies of the tables, requests/s. */
  readonly referenceRate: number;
  readonly front: readonly FrontPoint[];
  readonly curves: {
    readonly winner: readonly LoadCurvePoint[];
    readonly defaults: readonly LoadCurvePoint[];
  };
  readonly deployment: Deployment;
  readonly surge: Deployment;
  /** The winner's replicas at the surge's load: share of the requests that meet every limit. */
  readonly surgeWithoutMore: number;
  readonly controller: ControllerGain;
  readonly commands: readonly ServingCommand[];
}

/** That nothing meets the SLO, and what comes nearest. */
export interface Impossible {
  readonly candidate: Candidate;
  /** Times the rate of the traffic, so low that requests hardly meet. */
  readonly load: number;
  /** Value of each term of the SLO there, ms. */
  readonly values: readonly number[];
}
