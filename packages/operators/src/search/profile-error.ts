import { type EngineProfile, portableMath, type WeightPrecision } from '@servegym/simulator';
import { type IntervalEnds, normalProbability } from '@servegym/simulator/statistics';
import type { SloTerm } from './slo.ts';

export interface ProfileError {
  /** Share of the time within which 90 % of the left-out errors of the profile's kind lie. */
  readonly share: number;
  /** The same of the TTFT, which holds more than iterations. */
  readonly ttftShare: number;
  readonly source: string;
}

/**
 * Errors of profiles by how they were made; measured ones have their own. `benchmarks/run.ts interval-coverage` has the shares of
 * tables, and how often they hold what was measured; `benchmarks/run.ts diff` those of data sheets, which are 26 %.
 */
export const PROFILE_ERRORS = {
  tables: {
    ...{ share: 0.18, ttftShare: 0.53 },
    source:
      '90 % of the TPOT errors of profiles from kernel tables on 713 measured points of vLLM, each left out, are within it',
  },
  tablesOfSglang: {
    ...{ share: 0.26, ttftShare: 0.62 },
    source:
      '90 % of the TPOT errors of profiles from kernel tables on 810 measured points of SGLang, each left out, are within it',
  },
  estimated: {
    ...{ share: 0.28, ttftShare: 0.5 },
    source:
      '90 % of the errors of profiles from data sheets on 186 measured static batches are within it; most GPUs were never measured',
  },
} as const satisfies Record<string, ProfileError>;
/** Least error that a measured profile is taken to have: its fit is to latencies of one run. */
const LEAST_MEASURED = 0.05;

/** Error that intervals allow for, and where it comes from. A measured profile has no TTFT of its own: that of tables counts. */
export function profileError(
  { engine, weights, fit }: EngineProfile,
  precision: WeightPrecision,
): ProfileError {
  const { status } = weights[precision]!;
  if (status === 'tables' && engine.name === 'SGLang') return PROFILE_ERRORS.tablesOfSglang;
  if (status !== 'measured') return PROFILE_ERRORS[status];
  return {
    share: Math.max(LEAST_MEASURED, (fit?.heldOutWorstErrorPercent ?? 0) / 100),
    ttftShare: PROFILE_ERRORS.tables.ttftShare,
    source: `the profile's worst error on latencies that its fit left out, at least ${100 * LEAST_MEASURED} %`,
  };
}

/** Error of a latency. */
export function errorOf(
  { share, ttftShare }: Pick<ProfileError, 'share' | 'ttftShare'>,
  metric: SloTerm['metric'],
): number {
  return metric === 'ttft' ? ttftShare : share;
}

/**
 * Error of the ratio of two latencies, each of a law of its own. Laws of one engine and version share most of theirs: a ratio is no
 * further off than the worse one, and holds 90 % of the measured ratios so (`benchmarks/run.ts diff --points`). Others are independent.
 */
export function errorOfRatio(
  laws: readonly ProfileError[],
  metric: SloTerm['metric'],
  isOneEngine: boolean,
): number {
  const errors = laws.map((law) => errorOf(law, metric));
  return isOneEngine ? Math.max(...errors) : Math.sqrt(errors.reduce((sum, error) => sum + error ** 2, 0));
}

/** An interval over the traffic, widened by an error of the times. */
export function widened({ low, high }: IntervalEnds, share: number): IntervalEnds {
  return { low: low * (1 - share), high: high * (1 + share) };
}

/** Standard deviations within which 90 % of a normal distribution lie. */
const DEVIATIONS = 1.645;

/**
 * Chance that latencies are within their limits, where the logarithms of their errors are normal and independent, and 90 % are
 * within the error: a half for one at its limit.
 */
export function chanceWithin(
  latencies: readonly { readonly metric: SloTerm['metric']; readonly ms: number; readonly limitMs: number }[],
  error: Pick<ProfileError, 'share' | 'ttftShare'>,
): number {
  return latencies.reduce((chance, { metric, ms, limitMs }) => {
    const deviations = (DEVIATIONS * portableMath.log(limitMs / ms)) / errorOf(error, metric);
    return chance * normalProbability(deviations);
  }, 1);
}
