import {
  type EngineProfile,
  parseJsonlTrace,
  type SimulationRun,
  simulateTrace,
  type Trace,
} from '@servegym/simulator';
import { type Summary, summarize } from '@servegym/simulator/statistics';
import { CalibrationError } from '../schema/calibration-error.ts';

/** A run of a real vLLM engine, request by request. */
export interface MeasuredRun {
  /** Arrivals as the engine's clock saw them. */
  readonly trace: Trace;
  readonly ttftMs: Summary;
  readonly tpotMs: Summary;
  readonly e2eMs: Summary;
  /** From the first arrival to the last token, ms. */
  readonly makespanMs: number;
  readonly kvBlocks: number;
  readonly maxNumSeqs: number;
  readonly maxNumBatchedTokens: number;
}

const TIMES = ['queued_ts', 'first_token_ts', 'last_token_ts'] as const;
type RequestTimes = Record<(typeof TIMES)[number] | 'output_toks', number>;

/**
 * Reads a run: `requests.jsonl` (`arrival_time`, `input_toks`, `output_toks`, and on the engine's clock, in s,
 * `queued_ts`, `first_token_ts`, `last_token_ts`) and `meta.json` (`kv_cache.num_gpu_blocks`,
 * `engine_kwargs.max_num_seqs` and `.max_num_batched_tokens`).
 *
 * @throws {TraceError} or {CalibrationError} naming the line or the field that is wrong.
 */
export function parseMeasuredRun(requestsText: string, metaText: string, source: string): MeasuredRun {
  const file = `${source}/requests.jsonl`;
  const trace = parseJsonlTrace(requestsText, file);
  const times = requestsText
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line, i): RequestTimes => {
      const request: Partial<RequestTimes> = JSON.parse(line);
      for (const field of TIMES) {
        if (typeof request[field] !== 'number') {
          throw new CalibrationError(
            'CALIBRATION_FILE',
            `${file}:${i + 1}: expected \`${field}\` to be a number of seconds, got ${JSON.stringify(request[field]) ?? 'nothing'}`,
          );
        }
      }
      return request as RequestTimes;
    });
  const first = times[0].queued_ts;
  const ms = (seconds: (request: RequestTimes) => number) =>
    summarize(Float64Array.from(times, (request) => 1000 * seconds(request)).filter(Number.isFinite));
  return {
    trace: { ...trace, arrivalMs: Float64Array.from(times, ({ queued_ts }) => 1000 * (queued_ts - first)) },
    ttftMs: ms(({ first_token_ts, queued_ts }) => first_token_ts - queued_ts),
    tpotMs: ms(
      ({ last_token_ts, first_token_ts, output_toks }) =>
        (last_token_ts - first_token_ts) / (output_toks - 1),
    ),
    e2eMs: ms(({ last_token_ts, queued_ts }) => last_token_ts - queued_ts),
    makespanMs: 1000 * (Math.max(...times.map(({ last_token_ts }) => last_token_ts)) - first),
    ...readMeta(metaText, `${source}/meta.json`),
  };
}

/** The same requests on a simulated engine with the pool and the limits of the real one. */
export function replayRun(
  profile: EngineProfile,
  {
    trace,
    kvBlocks,
    maxNumSeqs,
    maxNumBatchedTokens,
  }: Pick<MeasuredRun, 'trace' | 'kvBlocks' | 'maxNumSeqs' | 'maxNumBatchedTokens'>,
): SimulationRun {
  // The arrivals are those at the engine: what lies before it has been spent.
  const atEngine = { ...profile, requestOverheadMs: 0 };
  return simulateTrace(trace, { profile: atEngine, kvBlocks, maxNumSeqs, maxNumBatchedTokens });
}

function readMeta(
  text: string,
  source: string,
): Pick<MeasuredRun, 'kvBlocks' | 'maxNumSeqs' | 'maxNumBatchedTokens'> {
  let meta: Record<string, Record<string, unknown>>;
  try {
    meta = JSON.parse(text);
  } catch (error) {
    throw new CalibrationError(
      'CALIBRATION_FILE',
      `${source}: expected JSON, got ${(error as Error).message}`,
    );
  }
  const read = (group: string, field: string): number => {
    const value = meta?.[group]?.[field];
    if (typeof value === 'number' && Number.isInteger(value) && value > 0) return value;
    throw new CalibrationError(
      'CALIBRATION_FILE',
      `${source}: expected \`${group}.${field}\` to be a whole number from 1, got ${JSON.stringify(value) ?? 'nothing'}`,
    );
  };
  return {
    kvBlocks: read('kv_cache', 'num_gpu_blocks'),
    maxNumSeqs: read('engine_kwargs', 'max_num_seqs'),
    maxNumBatchedTokens: read('engine_kwargs', 'max_num_batched_tokens'),
  };
}
