import {
  closedBatch,
  Engine,
  type EngineProfile,
  type IterationLaw,
  kvPoolBlocks,
  msFromTicks,
  simulateTrace,
  type WeightPrecision,
  weightVariant,
} from '@servegym/simulator';
import type { StaticBatchRow } from '../tables/static-batch.ts';

export type BatchShape = Pick<StaticBatchRow, 'batch' | 'inputTokens' | 'outputTokens'>;

const MAX_NUM_SEQS = 256;

/** Simulated seconds that a whole batch takes, from its arrival to its last token. */
export function simulateBatch(profile: EngineProfile, weights: WeightPrecision, shape: BatchShape): number {
  const trace = closedBatch(shape.batch, shape.inputTokens, shape.outputTokens);
  return simulateTrace(trace, { profile, weights }).simulatedMs / 1000;
}

/** `simulateBatch` under one law after another, which a fit does thousands of times: one engine serves them all. */
export class BatchSimulator {
  readonly #engine: Engine;

  constructor(profile: EngineProfile, weights: WeightPrecision) {
    this.#engine = new Engine(
      {
        law: weightVariant(profile, weights).law,
        maxNumSeqs: MAX_NUM_SEQS,
        kvBlocks: kvPoolBlocks(profile, weights, false, 1),
        schedulingPolicy: 'fcfs',
        speculationDepth: 0,
        speculation: null,
        survival: [],
      },
      {
        blockTokens: profile.memory.blockTokens,
        requestOverheadMs: profile.requestOverheadMs,
        prefixCaching: true,
      },
    );
  }

  /** As `simulateBatch`, with this law for the weights. */
  seconds(law: IterationLaw, { batch, inputTokens, outputTokens }: BatchShape): number {
    const engine = this.#engine;
    engine.shiftClock(engine.now);
    engine.clearLogs();
    engine.configure({ ...engine.config, law });
    for (let id = 0; id < batch; id += 1) {
      engine.submit({ id, arrival: 0, input: inputTokens, output: outputTokens });
    }
    engine.runUntil(Number.POSITIVE_INFINITY);
    return msFromTicks(engine.now) / 1000;
  }
}

/** The profile with another law for one of its precisions. */
export function withLaw(profile: EngineProfile, weights: WeightPrecision, law: IterationLaw): EngineProfile {
  const variant = profile.weights[weights];
  return { ...profile, weights: { ...profile.weights, [weights]: { ...variant, law } } };
}
