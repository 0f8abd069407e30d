import { type EngineProfile, parseTrace, type SimulationRun, simulateTrace } from '@servegym/simulator';
import { summarize } from '@servegym/simulator/statistics';
import { z } from 'zod';
import { checked, parseJson, wholeNumber } from '../schema/read-json.ts';

const CODE = 'CALIBRATION_FILE';
const seconds = z.number({ error: 'a number of seconds' });
const requestTimes = z.object({
  queued_ts: seconds,
  first_token_ts: seconds,
  last_token_ts: seconds,
  output_toks: wholeNumber(1),
});
const count = wholeNumber(1);
const runMeta = z.object({
  kv_cache: z.object({ num_gpu_blocks: count }).prefault({} as never),
  engine_kwargs: z.object({ max_num_seqs: count, max_num_batched_tokens: count }).prefault({} as never),
});

/**
 * Reads a run of a real vLLM engine, request by request: `requests.jsonl` (`arrival_time`, `input_toks`, `output_toks`,
 * and on the engine's clock, in s, `queued_ts`, `first_token_ts`, `last_token_ts`) and `meta.json`
 * (`kv_cache.num_gpu_blocks`, `engine_kwargs.max_num_seqs` and `.max_num_batched_tokens`).
 *
 * @throws {SimulatorError} or {ProfileError} naming the line or the field that is wrong.
 */
export function parseMeasuredRun(requestsText: string, metaText: string, source: string) {
  const file = `${source}/requests.jsonl`;
  const trace = parseTrace(requestsText, file);
  const times = requestsText
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line, i) => checked(requestTimes, JSON.parse(line), `${file}:${i + 1}`, { code: CODE }));
  const first = times[0].queued_ts;
  const ms = (secondsOf: (request: (typeof times)[number]) => number) =>
    summarize(Float64Array.from(times, (request) => 1000 * secondsOf(request)).filter(Number.isFinite));
  const metaFile = `${source}/meta.json`;
  const meta = checked(runMeta, parseJson(metaText, metaFile, CODE, 'JSON'), metaFile, { code: CODE });
  return {
    /** Arrivals as the engine's clock saw them. */
    trace: { ...trace, arrivalMs: Float64Array.from(times, ({ queued_ts }) => 1000 * (queued_ts - first)) },
    ttftMs: ms(({ first_token_ts, queued_ts }) => first_token_ts - queued_ts),
    tpotMs: ms(
      ({ last_token_ts, first_token_ts, output_toks }) =>
        (last_token_ts - first_token_ts) / (output_toks - 1),
    ),
    e2eMs: ms(({ last_token_ts, queued_ts }) => last_token_ts - queued_ts),
    /** From the first arrival to the last token, ms. */
    makespanMs: 1000 * (Math.max(...times.map(({ last_token_ts }) => last_token_ts)) - first),
    kvBlocks: meta.kv_cache.num_gpu_blocks,
    maxNumSeqs: meta.engine_kwargs.max_num_seqs,
    maxNumBatchedTokens: meta.engine_kwargs.max_num_batched_tokens,
  };
}

/** The same requests on a simulated engine with the pool and the limits of the real one. */
export function replayRun(
  profile: EngineProfile,
  run: Pick<ReturnType<typeof parseMeasuredRun>, 'trace' | 'kvBlocks' | 'maxNumSeqs' | 'maxNumBatchedTokens'>,
): SimulationRun {
  const { trace, kvBlocks, maxNumSeqs, maxNumBatchedTokens } = run;
  // The arrivals are those at the engine: what lies before it has been spent.
  const atEngine = { ...profile, requestOverheadMs: 0 };
  return simulateTrace(trace, { profile: atEngine, kvBlocks, maxNumSeqs, maxNumBatchedTokens });
}
