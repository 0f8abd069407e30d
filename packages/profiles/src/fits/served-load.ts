import {
  type EngineProfile,
  kvPoolBlocks,
  parseTrace,
  RandomStream,
  type SimulationRun,
  simulateTrace,
  type Trace,
} from '@servegym/simulator';
import { summarize } from '@servegym/simulator/statistics';
import { z } from 'zod';
import { type EngineConstants, VLLM_V1 } from '../data/engine-constants.ts';
import { findGpu } from '../data/gpu.ts';
import { findModel } from '../data/model-config.ts';
import { checked, numberAboveZero, ProfileError, parseJson, wholeNumber } from '../schema/read-json.ts';
import { readCsv } from '../tables/read-csv.ts';
import { estimatedProfile } from './estimated-profile.ts';

const CODE = 'CALIBRATION_FILE';
const aboveZero = numberAboveZero();
const text = z.string({ error: 'a text' });
const stage = z.object({ duration: aboveZero, rate: aboveZero });

/** Server of a load. */
const loadServer = z.object({
  /** GPUs of the tensor-parallel group. */
  tp: aboveZero,
  max_num_seqs: aboveZero,
  max_num_batched_tokens: aboveZero,
  /** Default: what the estimated profile leaves at `gpu_memory_utilization`. */
  kv_blocks: aboveZero.optional(),
  /** Default 0.9. */
  gpu_memory_utilization: aboveZero.optional(),
  model: text,
  gpu: text,
  weights: z.enum(['FP16', 'FP8'], { error: 'FP16 or FP8' }),
});
type LoadServer = Readonly<z.infer<typeof loadServer>>;

/** Of a published load; latencies may also stand in `measured`, and stages and lengths in `inferred`. */
const servedLoad = loadServer.extend({
  run: z.string(),
  /** One after the other: `rate` requests a second for `duration` seconds. */
  stages: z.custom<readonly z.infer<typeof stage>[]>(
    (stages) => z.array(stage).min(1).safeParse(stages).success,
    {
      error: 'a list of {duration, rate} above 0',
    },
  ),
  input_tokens: aboveZero,
  output_tokens: aboveZero,
  ttft_mean_ms: aboveZero,
  ttft_p99_ms: aboveZero,
  e2e_mean_ms: aboveZero,
});

/**
 * Latencies of a real server under a load of requests of equal lengths with exponential gaps, whose prompts repeat:
 * after the first `PROMPTS` requests the prefix cache has every prompt.
 */
export type ServedLoad = Readonly<z.infer<typeof servedLoad>>;

/** `itlMean`: mean over requests of the time between two tokens. */
export const LATENCIES = ['ttftMean', 'ttftP99', 'itlMean', 'e2eMean'] as const;
/** Latencies of a load, ms, or their errors. */
export type LoadLatencies = Readonly<Record<(typeof LATENCIES)[number], number>>;

/** Each of the latencies. */
export function latencies(of: (what: (typeof LATENCIES)[number]) => number): LoadLatencies {
  return Object.fromEntries(LATENCIES.map((what) => [what, of(what)])) as LoadLatencies;
}

/** Prompts that a load sends over and over, in the same order; so many AIPerf draws unless it is told how many. */
export const PROMPTS = 100;
/** Those of the served loads begin with a system prompt of 100 tokens, of which these blocks are whole. */
const SYSTEM_BLOCKS = 6;
const BLOCK_TOKENS = 16;

/** Reads a JSON list of served loads. @throws {ProfileError} naming the load and the field that is wrong. */
export function parseServedLoads(json: string, source: string): ServedLoad[] {
  const loads = parseJson(json, source, CODE, 'JSON');
  if (!Array.isArray(loads) || loads.length === 0)
    throw new ProfileError(CODE, source, 'a list of served loads', json.slice(0, 40));
  return loads.map((value, i) => {
    const { measured, inferred, ...rest } = value ?? {};
    const load = { ...rest, ...inferred, ...measured };
    const stages = Array.isArray(load.stages)
      ? load.stages.map(({ duration, duration_s: seconds, rate }: Record<string, unknown>) => ({
          duration: duration ?? seconds,
          rate,
        }))
      : load.stages;
    return checked(servedLoad, { ...load, run: String(load.run), stages }, source, {
      of: ` of load ${i + 1}`,
      code: CODE,
    });
  });
}

/** Measured latencies of a load. */
export function measuredLatencies(load: ServedLoad): LoadLatencies {
  return {
    ttftMean: load.ttft_mean_ms,
    ttftP99: load.ttft_p99_ms,
    e2eMean: load.e2e_mean_ms,
    itlMean: (load.e2e_mean_ms - load.ttft_mean_ms) / (load.output_tokens - 1),
  };
}

/** Relative errors of simulated latencies of a load, positive when the simulator says more. */
export function latencyErrors(load: ServedLoad, simulated: LoadLatencies): LoadLatencies {
  const measured = measuredLatencies(load);
  return latencies((what) => simulated[what] / measured[what] - 1);
}

/**
 * Latencies of a load on the estimated profile of its GPU and model.
 * @param share Share of each stage that is simulated. The requests after the first `PROMPTS` stand for the rest.
 */
export function simulateServedLoad(
  load: ServedLoad,
  constants: EngineConstants = VLLM_V1,
  share = 1,
): LoadLatencies {
  const { ids, ttftMs, e2eMs, tpotMs } = serve(load, servedLoadTrace(load, share), constants);
  const weight = Float64Array.from(ids, (id) => (id < PROMPTS ? 1 : 1 / share));
  const total = weight.reduce((sum, each) => sum + each, 0);
  const mean = (values: Float64Array) => values.reduce((sum, value, i) => sum + value * weight[i], 0) / total;
  const slowestFirst = [...ttftMs.keys()].sort((a, b) => ttftMs[b] - ttftMs[a]);
  let slower = 0;
  const p99 = slowestFirst.find((i) => {
    slower += weight[i];
    return slower >= 0.01 * total;
  });
  return { ttftMean: mean(ttftMs), ttftP99: ttftMs[p99!], e2eMean: mean(e2eMs), itlMean: mean(tpotMs) };
}

/** A trace on the server of a load, with the estimated profile of its GPU and model. */
export function serve(load: LoadServer, trace: Trace, constants: EngineConstants): SimulationRun {
  const { gpu, model, tp, weights } = load;
  const estimated = estimatedProfile(findGpu(gpu), findModel(model), tp, constants);
  const utilization = load.gpu_memory_utilization ?? estimated.memory.utilization;
  const profile = { ...estimated, memory: { ...estimated.memory, utilization } };
  return simulateTrace(trace, {
    ...{ profile, weights },
    // Published as tokens over the block size: with groups, vLLM has as many blocks for each.
    kvBlocks: load.kv_blocks
      ? load.kv_blocks * (profile.model.kvGroups?.attention.length ?? 1)
      : kvPoolBlocks(profile, weights, false, 1),
    maxNumSeqs: load.max_num_seqs,
    maxNumBatchedTokens: load.max_num_batched_tokens,
  });
}

/** The requests of `share` of each stage of a load, drawn with a seed of its own. */
export function servedLoadTrace(
  { run, stages, input_tokens, output_tokens }: ServedLoad,
  share: number,
): Trace {
  const random = new RandomStream(0, `served load ${run}`);
  const arrivals: number[] = [];
  let now = 0;
  for (const { duration, rate } of stages) {
    const requests = Math.round(duration * share * rate);
    for (let i = 0; i < requests; i += 1) {
      now += random.exponential(1000 / rate);
      arrivals.push(now);
    }
  }
  const count = arrivals.length;
  return repeatedPrompts({
    source: `served load ${run}`,
    arrivalMs: Float64Array.from(arrivals, (arrival) => arrival - arrivals[0]),
    inputTokens: new Int32Array(count).fill(input_tokens),
    outputTokens: new Int32Array(count).fill(output_tokens),
  });
}

/** A trace whose prompts are those of `PROMPTS` requests before, and of which all begin with the same blocks. */
export function repeatedPrompts(trace: Trace, sameBlocks = SYSTEM_BLOCKS): Trace {
  const ids: number[] = [];
  const offsets = Int32Array.from({ length: trace.inputTokens.length + 1 }, (_, i) => {
    if (i === 0) return 0;
    const prompt = 1 + ((i - 1) % PROMPTS);
    const blocks = Math.floor(trace.inputTokens[i - 1] / BLOCK_TOKENS);
    for (let block = 0; block < blocks; block += 1) {
      ids.push(block < sameBlocks ? block : prompt * 2 ** 20 + block);
    }
    return ids.length;
  });
  return { ...trace, prefixBlocks: { blockTokens: BLOCK_TOKENS, ids: Float64Array.from(ids), offsets } };
}

/** The kernels that a server compiles at its first requests are no part of a law. */
const WARM_UP = 100;
const COLUMNS = ['arrival_s', 'input_tokens', 'output_tokens', 'ttft_ms', 'e2e_ms'] as const;

/** A row of `meta.json`. */
interface RecordedLoadServer {
  readonly file: string;
  readonly model: string;
  readonly tensor_parallelism: number;
  readonly max_num_seqs: number;
  readonly max_num_batched_tokens: number;
  readonly kv_blocks_total_gpu: number;
}

/**
 * Reads a served load request by request, in order of arrival; NaN where a request failed. Output tokens are the median of
 * the load: all requests ask for as many, and what some clients count again in the text differs.
 *
 * @throws {ProfileError} when the columns are others.
 */
export function parseRecordedLoad(csv: string, server: RecordedLoadServer) {
  const rows = readCsv(csv, server.file, COLUMNS);
  const column = (name: (typeof COLUMNS)[number]) =>
    Float64Array.from(rows, (row) => (row.text(name) === '' ? Number.NaN : Number(row.text(name))));
  const outputs = column('output_tokens')
    .filter((tokens) => tokens > 0)
    .sort();
  const arrivals = column('arrival_s');
  return {
    name: server.file.replace('.csv.gz', ''),
    model: server.model,
    gpu: 'H100',
    tp: server.tensor_parallelism,
    weights: 'FP16' as const,
    kv_blocks: server.kv_blocks_total_gpu,
    max_num_seqs: server.max_num_seqs,
    max_num_batched_tokens: server.max_num_batched_tokens,
    arrivalMs: arrivals.map((arrival) => 1000 * (arrival - arrivals[0])),
    inputTokens: Int32Array.from(column('input_tokens'), (tokens) => tokens || 1),
    outputTokens: new Int32Array(rows.length).fill(outputs[outputs.length >> 1]),
    ttftMs: column('ttft_ms'),
    e2eMs: column('e2e_ms'),
  };
}

/** Errors of the latencies of single requests, relative, without their signs: those of each request after the warm-up. */
export function recordedLoadErrors(
  load: ReturnType<typeof parseRecordedLoad>,
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
