import { fittedLoad, type MeasuredLoad } from '@servegym/profiles';
import { type EngineProfile, type Summary, simulateTrace } from '@servegym/simulator';
import { summarize } from '@servegym/simulator/statistics';
import type { EngineLimits } from './probe.ts';

/** Means and p99, ms. */
type Times = Readonly<Record<'ttft' | 'tpot' | 'e2e', Pick<Summary, 'mean' | 'p99'>>>;

/** A load that a server served, beside its prediction. */
export interface LoadComparison {
  readonly name: string;
  readonly requests: number;
  readonly failed: number;
  readonly measuredMs: Times;
  readonly predictedMs: Times;
  /** Percent, positive when the prediction is longer. */
  readonly errors: Times;
}

/** Predicts a measured load: the same arrivals and lengths on the simulated server. */
export function compareLoad(
  load: MeasuredLoad,
  profile: EngineProfile,
  { maxNumSeqs, maxNumBatchedTokens, kvBlocks }: Partial<EngineLimits>,
): LoadComparison {
  const { trace, measured } = fittedLoad(load);
  const run = simulateTrace(trace, { profile, maxNumSeqs, maxNumBatchedTokens, kvBlocks });
  const measuredMs = timesOf(measured);
  const predictedMs = timesOf(run);
  const error = (what: keyof Times, of: 'mean' | 'p99') =>
    100 * (predictedMs[what][of] / measuredMs[what][of] - 1);
  const errors = (what: keyof Times) => ({ mean: error(what, 'mean'), p99: error(what, 'p99') });
  return {
    name: load.source,
    requests: load.requests.length,
    failed: load.failed,
    measuredMs,
    predictedMs,
    errors: { ttft: errors('ttft'), tpot: errors('tpot'), e2e: errors('e2e') },
  };
}

function timesOf({ ttftMs, tpotMs, e2eMs }: Readonly<Record<`${keyof Times}Ms`, Float64Array>>): Times {
  return {
    ttft: summarize(ttftMs),
    tpot: summarize(tpotMs.filter(Number.isFinite)),
    e2e: summarize(e2eMs),
  };
}
