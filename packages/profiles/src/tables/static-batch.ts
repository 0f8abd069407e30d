import { ProfileError } from '../schema/profile-error.ts';
import { readCsv } from './read-csv.ts';

/** A batch of equal requests that were all there at the start, and how long the whole of it took. */
export interface StaticBatchRow {
  readonly gpu: string;
  readonly gpus: number;
  readonly engine: string;
  readonly model: string;
  /** Precision of the weights, in lower case. */
  readonly weights: string;
  /** Precision of the KV cache, in lower case. */
  readonly kvCache: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly batch: number;
  readonly latencyS: number;
}

const COLUMNS = [
  'gpu',
  'gpus',
  'engine',
  'model',
  'weights',
  'kv_cache',
  'input_tokens',
  'output_tokens',
  'batch',
  'latency_s',
] as const;

/**
 * Reads static-batch latencies: CSV with the columns `gpu, gpus, engine, model, weights, kv_cache, input_tokens,
 * output_tokens, batch, latency_s`, in any order; further columns are ignored.
 *
 * @throws {ProfileError} with the file and line that is wrong.
 */
export function parseStaticBatches(text: string, source: string): StaticBatchRow[] {
  const rows = readCsv(text, source, COLUMNS).map((row): StaticBatchRow => {
    const whole = (name: (typeof COLUMNS)[number]) => row.number(name, { from: 1, isWhole: true });
    return {
      gpu: row.text('gpu'),
      gpus: whole('gpus'),
      engine: row.text('engine'),
      model: row.text('model'),
      weights: row.text('weights').toLowerCase(),
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
