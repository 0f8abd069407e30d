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
import { ProfileError } from '../schema/read-json.ts';
import { readCsv } from '../tables/read-csv.ts';

const COLUMNS = [
  ...(['gpu', 'gpus', 'engine', 'model', 'weights', 'kv_cache'] as const),
  ...(['input_tokens', 'output_tokens', 'batch', 'latency_s'] as const),
] as const;

/** A batch of equal requests that were all there at the start, and how long the whole of it took. */
export type StaticBatchRow = Readonly<ReturnType<typeof parseStaticBatches>[number]>;

/**
 * Reads static-batch latencies: CSV with the columns `gpu, gpus, engine, model, weights, kv_cache, input_tokens,
 * output_tokens, batch, latency_s`, in any order; further columns are ignored.
 *
 * @throws {ProfileError} with the file and line that is wrong.
 */
export function parseStaticBatches(text: string, source: string) {
  const rows = readCsv(text, source, COLUMNS).map((row) => {
    const whole = (name: (typeof COLUMNS)[number]) => row.number(name, { from: 1, isWhole: true });
    return {
      gpu: row.text('gpu'),
      gpus: whole('gpus'),
      engine: row.text('engine'),
      model: row.text('model'),
      /** Precision of the weights, in lower case. */
      weights: row.text('weights').toLowerCase(),
      /** Precision of the KV cache, in lower case. */
      kvCache: row.text('kv_cache').toLowerCase(),
      inputTokens: whole('input_tokens'),
      outputTokens: whole('output_tokens'),
      batch: whole('batch'),
      latencyS: row.number('latency_s', { isAboveZero: true }),
    };
  });
  if (rows.length > 0) return rows;
  throw new ProfileError('CALIBRATION_FILE', source, 'at least one measurement', 'none');
}

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
