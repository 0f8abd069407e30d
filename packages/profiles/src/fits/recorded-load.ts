import { type EngineConstants, VLLM_V1 } from '../data/engine-constants.ts';
import { ProfileError } from '../schema/profile-error.ts';
import { repeatedPrompts, type ServedLoad, serve } from './served-load.ts';

/** A served load, request by request. */
export interface RecordedLoad
  extends Pick<
    ServedLoad,
    'model' | 'gpu' | 'tp' | 'weights' | 'kv_blocks' | 'max_num_seqs' | 'max_num_batched_tokens'
  > {
  readonly name: string;
  /** In order of arrival; NaN where a request failed. */
  readonly arrivalMs: Float64Array;
  readonly inputTokens: Int32Array;
  readonly outputTokens: Int32Array;
  readonly ttftMs: Float64Array;
  readonly e2eMs: Float64Array;
}

/** A row of `meta.json`. */
export interface RecordedLoadServer {
  readonly file: string;
  readonly model: string;
  readonly requests: number;
  readonly failed: number;
  readonly tensor_parallelism: number;
  readonly max_num_seqs: number;
  readonly max_num_batched_tokens: number;
  readonly kv_blocks_total_gpu: number;
}

/** The kernels that a server compiles at its first requests are no part of a law. */
const WARM_UP = 100;
const COLUMNS = 'arrival_s,input_tokens,output_tokens,ttft_ms,e2e_ms';

/**
 * Reads the requests of a load. Output tokens are the median of the load: all requests ask for as many, and what some
 * clients count again in the text differs.
 * @throws {ProfileError} when the columns are others.
 */
export function parseRecordedLoad(csv: string, server: RecordedLoadServer): RecordedLoad {
  const [header, ...lines] = csv.trim().split('\n');
  if (header.trim() !== COLUMNS) {
    throw new ProfileError('CALIBRATION_FILE', server.file, `the columns ${COLUMNS}`, header.slice(0, 100));
  }
  const rows = lines.map((line) => line.split(',').map((text) => (text === '' ? Number.NaN : Number(text))));
  const outputs = rows.map((row) => row[2]).filter((tokens) => tokens > 0);
  const output = outputs.sort((a, b) => a - b)[outputs.length >> 1];
  const first = rows[0][0];
  return {
    name: server.file.replace('.csv.gz', ''),
    model: server.model,
    gpu: 'H100',
    tp: server.tensor_parallelism,
    weights: 'FP16',
    kv_blocks: server.kv_blocks_total_gpu,
    max_num_seqs: server.max_num_seqs,
    max_num_batched_tokens: server.max_num_batched_tokens,
    arrivalMs: Float64Array.from(rows, ([arrival]) => 1000 * (arrival - first)),
    inputTokens: Int32Array.from(rows, (row) => row[1] || 1),
    outputTokens: new Int32Array(rows.length).fill(output),
    ttftMs: Float64Array.from(rows, (row) => row[3]),
    e2eMs: Float64Array.from(rows, (row) => row[4]),
  };
}

/** Errors of the latencies of single requests, relative, without their signs: those of each request after the warm-up. */
export function recordedLoadErrors(
  load: RecordedLoad,
  constants: EngineConstants = VLLM_V1,
): { readonly ttft: number[]; readonly e2e: number[] } {
  const { name: source, arrivalMs, inputTokens, outputTokens } = load;
  const run = serve(load, repeatedPrompts({ source, arrivalMs, inputTokens, outputTokens }), constants);
  const errors = { ttft: [] as number[], e2e: [] as number[] };
  for (const [at, id] of run.ids.entries()) {
    if (id < WARM_UP || !Number.isFinite(load.e2eMs[id])) continue;
    errors.ttft.push(Math.abs(run.ttftMs[at] / load.ttftMs[id] - 1));
    errors.e2e.push(Math.abs(run.e2eMs[at] / load.e2eMs[id] - 1));
  }
  return errors;
}
