import type { Knob } from './candidate.ts';
import type { Objective } from './search.ts';
import type { SloTerm } from './slo.ts';

/** What is asked of a tuning. */
export interface TuneOptions {
  readonly slo: readonly SloTerm[];
  readonly objective: Objective;
  readonly knobs: readonly Knob[];
  readonly minQuality: number;
  /** Fewest and most engines that may share the traffic. */
  readonly replicas: readonly [fewest: number, most: number];
  /** Times the rate of the traffic. */
  readonly rateScale: number;
  /** Candidates to start from. */
  readonly start: number;
  readonly seed: number;
  readonly onProgress?: (stage: string, share: number) => void;
}

/** Added to the seed where the held-out traffic is served, so that no chance is shared with the search. */
export const HELD_OUT_SEED = 7919;
