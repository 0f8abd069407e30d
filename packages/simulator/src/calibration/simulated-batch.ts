import type { EngineProfile, IterationLaw, WeightPrecision } from '../profiles/engine-profile.ts';
import { simulateTrace } from '../simulation/simulate-trace.ts';
import { closedBatch } from '../traces/operations.ts';
import type { StaticBatchRow } from './static-batch.ts';

type BatchShape = Pick<StaticBatchRow, 'batch' | 'inputTokens' | 'outputTokens'>;

/** Simulated seconds that a whole batch takes, from its arrival to its last token. */
export function simulateBatch(profile: EngineProfile, weights: WeightPrecision, shape: BatchShape): number {
  const trace = closedBatch(shape.batch, shape.inputTokens, shape.outputTokens);
  return simulateTrace(trace, { profile, weights }).simulatedMs / 1000;
}

/** The profile with another law for one of its precisions. */
export function withLaw(profile: EngineProfile, weights: WeightPrecision, law: IterationLaw): EngineProfile {
  const variant = profile.weights[weights]!;
  return { ...profile, weights: { ...profile.weights, [weights]: { ...variant, law } } };
}
