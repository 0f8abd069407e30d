import type { EngineProfile, WeightPrecision } from '@servegym/simulator';

/**
 * Error of a profile's times by how it was made. Measured profiles have their own figure.
 * Source: docs/fidelity.md, operating points of vLLM that were open to us (TPOT), and static batches of A100, H100 and GH200.
 */
export const PROFILE_ERRORS = {
  tables: {
    share: 0.14,
    source: 'mean TPOT error of profiles from kernel tables on 713 measured points (docs/fidelity.md)',
  },
  // Twice: most GPUs that they are made for were never measured.
  estimated: {
    share: 0.28,
    source:
      'twice the mean error of profiles from data sheets on 186 measured static batches (benchmarks/run.ts diff)',
  },
} as const;
/** Least error that a measured profile is taken to have: its fit is to latencies of one run. */
const LEAST_MEASURED = 0.05;

/** Error that intervals allow for, as a share of the time, and where it comes from. */
export function profileError(
  profile: EngineProfile,
  precision: WeightPrecision,
): { readonly share: number; readonly source: string } {
  const { status } = profile.weights[precision]!;
  if (status !== 'measured') return PROFILE_ERRORS[status];
  return {
    share: Math.max(LEAST_MEASURED, (profile.fit?.heldOutMeanErrorPercent ?? 0) / 100),
    source: `the profile's error on latencies that its fit left out, at least ${100 * LEAST_MEASURED} %`,
  };
}
