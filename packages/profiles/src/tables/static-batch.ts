import { forEachCsvRecord, TraceError } from '@servegym/simulator';
import { CalibrationError } from '../schema/calibration-error.ts';

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
 * @throws {CalibrationError} with the file and line that is wrong.
 */
export function parseStaticBatches(text: string, source: string): StaticBatchRow[] {
  const rows: StaticBatchRow[] = [];
  let header: readonly string[] | undefined;
  try {
    forEachCsvRecord(text, source, 1, (fields, line) => {
      if (header === undefined) {
        header = fields.map((name) => name.trim().toLowerCase());
        const missing = COLUMNS.filter((name) => !header!.includes(name));
        if (missing.length > 0)
          throw wrong(source, line, `the columns ${missing.join(', ')}`, fields.join(','));
        return;
      }
      if (fields.length !== header.length) {
        throw wrong(source, line, `${header.length} fields, as the header has`, `${fields.length}`);
      }
      rows.push(readRow(header, fields, source, line));
    });
  } catch (error) {
    if (error instanceof TraceError) throw new CalibrationError('CALIBRATION_FILE', error.message);
    throw error;
  }
  if (rows.length === 0) {
    throw new CalibrationError('CALIBRATION_FILE', `${source}: expected at least one measurement, got none`);
  }
  return rows;
}

function readRow(
  header: readonly string[],
  fields: readonly string[],
  source: string,
  line: number,
): StaticBatchRow {
  const text = (name: (typeof COLUMNS)[number]) => fields[header.indexOf(name)].trim();
  const whole = (name: (typeof COLUMNS)[number]) => {
    const value = Number(text(name));
    if (Number.isInteger(value) && value >= 1 && value <= 1e7) return value;
    throw wrong(source, line, `${name} to be a whole number from 1`, text(name));
  };
  const latencyS = Number(text('latency_s'));
  if (!(latencyS > 0 && latencyS < Number.POSITIVE_INFINITY)) {
    throw wrong(source, line, 'latency_s to be a number above 0', text('latency_s'));
  }
  return {
    gpu: text('gpu'),
    gpus: whole('gpus'),
    engine: text('engine'),
    model: text('model'),
    weights: text('weights').toLowerCase(),
    kvCache: text('kv_cache').toLowerCase(),
    inputTokens: whole('input_tokens'),
    outputTokens: whole('output_tokens'),
    batch: whole('batch'),
    latencyS,
  };
}

function wrong(source: string, line: number, expected: string, got: string): CalibrationError {
  return new CalibrationError('CALIBRATION_FILE', `${source}:${line}: expected ${expected}, got "${got}"`);
}
