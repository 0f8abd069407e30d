import type { tuneResult } from '@servegym/operators';
import type { PlanResult } from '../plan/plan-client.ts';

/** A section of a report in words. */
export interface Note {
  readonly title: string;
  readonly items?: readonly string[];
  /** Text to copy. */
  readonly code?: string;
}

/** What a page shows that a command writes. The command's own JSON is its `result`. */
export type Report = {
  readonly title: string;
  readonly lead: string;
  readonly notes?: readonly Note[];
} & (
  | { readonly kind: 'plan'; readonly result: PlanResult }
  | { readonly kind: 'tune'; readonly result: readonly ReportedTune[] }
  | { readonly kind: 'training'; readonly result: readonly TrainingMetrics[] }
);

/** A point of the curve of a load. */
export interface LoadPoint {
  readonly rate: number;
  readonly good: number;
  readonly sloUse: number;
}

type TuneJson = ReturnType<typeof tuneResult.json>;
/** A result of `tune`, and what its page draws beside it. */
export type ReportedTune = TuneJson & {
  readonly page: {
    /** Status and source of the profile. */
    readonly source: string;
    readonly curves: { readonly winner: readonly LoadPoint[]; readonly defaults: readonly LoadPoint[] };
    /** Settings that were simulated and are not on the front. */
    readonly others: FoundTune['front'];
    /** Sentences for an SLO that nothing meets; else none. */
    readonly impossible: readonly string[];
  };
};
/** The result where some settings meet the SLO. */
export type FoundTune = Extract<TuneJson, { candidates: unknown }>;

/** A line of `metrics.jsonl`. */
export type TrainingMetrics = { readonly steps: number } & Readonly<Record<string, number | null>>;
