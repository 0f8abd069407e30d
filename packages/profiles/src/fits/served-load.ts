import {
  type EngineProfile,
  kvPoolBlocks,
  RandomStream,
  type SimulationRun,
  simulateTrace,
  type Trace,
} from '@servegym/simulator';
import { type EngineConstants, VLLM_V1 } from '../data/engine-constants.ts';
import { findGpu } from '../data/gpu.ts';
import { findModel } from '../data/known-models.ts';
import { CalibrationError } from '../schema/calibration-error.ts';
import { estimatedProfile } from './estimated-profile.ts';

/**
 * Latencies of a real server under a load of requests of equal lengths with exponential gaps, whose prompts repeat:
 * after the first `PROMPTS` requests the prefix cache has every prompt.
 */
export interface ServedLoad {
  readonly run: string;
  readonly model: string;
  readonly gpu: string;
  /** GPUs of the tensor-parallel group. */
  readonly tp: number;
  readonly weights: 'FP16' | 'FP8';
  readonly max_num_seqs: number;
  readonly max_num_batched_tokens: number;
  /** Default: what the estimated profile leaves at `gpu_memory_utilization`. */
  readonly kv_blocks?: number;
  /** Default 0.9. */
  readonly gpu_memory_utilization?: number;
  /** One after the other: `rate` requests a second for `duration` seconds. */
  readonly stages: readonly { readonly duration: number; readonly rate: number }[];
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly ttft_mean_ms: number;
  readonly ttft_p99_ms: number;
  readonly e2e_mean_ms: number;
}

/** Latencies of a load, ms. */
export interface LoadLatencies {
  readonly ttftMean: number;
  readonly ttftP99: number;
  readonly e2eMean: number;
  /** Mean over requests of the time between two tokens. */
  readonly itlMean: number;
}

/** Prompts that a load sends over and over, in the same order. */
const PROMPTS = 100;
/** All of them begin with a system prompt of 100 tokens, of which these blocks are whole. */
const SYSTEM_BLOCKS = 6;
const BLOCK_TOKENS = 16;

const NUMBERS = [
  'tp',
  'max_num_seqs',
  'max_num_batched_tokens',
  'input_tokens',
  'output_tokens',
  'ttft_mean_ms',
  'ttft_p99_ms',
  'e2e_mean_ms',
] as const satisfies readonly (keyof ServedLoad)[];

/**
 * Reads a JSON list of served loads; latencies may also stand in `measured`, and stages and lengths in `inferred`.
 * @throws {CalibrationError} naming the run and the field that is wrong.
 */
export function parseServedLoads(text: string, source: string): ServedLoad[] {
  let loads: unknown;
  try {
    loads = JSON.parse(text);
  } catch (error) {
    throw new CalibrationError(
      'CALIBRATION_FILE',
      `${source}: expected JSON, got ${(error as Error).message}`,
    );
  }
  if (!Array.isArray(loads) || loads.length === 0) {
    throw new CalibrationError('CALIBRATION_FILE', `${source}: expected a list of served loads`);
  }
  return loads.map((value: Record<string, unknown> | null, i) => {
    const { measured, inferred, ...rest } = value ?? {};
    const load: Record<string, unknown> = { ...rest, ...(inferred as object), ...(measured as object) };
    const wrong = (field: string, expected: string) =>
      new CalibrationError(
        'CALIBRATION_FILE',
        `${source}: expected \`${field}\` of load ${i + 1} to be ${expected}, got ${JSON.stringify(load[field]) ?? 'nothing'}`,
      );
    const isAboveZero = (number: unknown) => typeof number === 'number' && number > 0;
    for (const field of NUMBERS) {
      if (!isAboveZero(load[field])) throw wrong(field, 'a number above 0');
    }
    for (const field of ['kv_blocks', 'gpu_memory_utilization']) {
      if (load[field] !== undefined && !isAboveZero(load[field])) throw wrong(field, 'a number above 0');
    }
    for (const field of ['model', 'gpu']) {
      if (typeof load[field] !== 'string') throw wrong(field, 'a text');
    }
    if (load.weights !== 'FP16' && load.weights !== 'FP8') throw wrong('weights', 'FP16 or FP8');
    const stages = Array.isArray(load.stages)
      ? load.stages.map(({ duration, duration_s, rate }) => ({ duration: duration ?? duration_s, rate }))
      : [];
    if (
      stages.length === 0 ||
      !stages.every(({ duration, rate }) => isAboveZero(duration) && isAboveZero(rate))
    ) {
      throw wrong('stages', 'a list of {duration, rate} above 0');
    }
    return { ...load, run: String(load.run), stages } as unknown as ServedLoad;
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

/**
 * Latencies of a load on the estimated profile of its GPU and model.
 * @param share Share of each stage that is simulated. The requests after the first `PROMPTS` stand for the rest.
 */
export function simulateServedLoad(
  load: ServedLoad,
  constants: EngineConstants = VLLM_V1,
  share = 1,
): LoadLatencies {
  return loadLatencies(load, estimatedProfileOf(load, constants), share);
}

/**
 * Latencies of a load on any profile of its GPU and model.
 * @param share As of `simulateServedLoad`.
 */
export function loadLatencies(load: ServedLoad, profile: EngineProfile, share: number): LoadLatencies {
  const { ids, ttftMs, e2eMs, tpotMs } = serveOn(profile, load, servedLoadTrace(load, share));
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

/** Server of a load. */
type LoadServer = Pick<
  ServedLoad,
  | 'gpu'
  | 'model'
  | 'tp'
  | 'weights'
  | 'kv_blocks'
  | 'gpu_memory_utilization'
  | 'max_num_seqs'
  | 'max_num_batched_tokens'
>;

/** A trace on the server of a load, with the estimated profile of its GPU and model. */
export function serve(load: LoadServer, trace: Trace, constants: EngineConstants): SimulationRun {
  return serveOn(estimatedProfileOf(load, constants), load, trace);
}

function estimatedProfileOf({ gpu, model, tp }: LoadServer, constants: EngineConstants): EngineProfile {
  return estimatedProfile(findGpu(gpu), findModel(model), tp, constants);
}

function serveOn(given: EngineProfile, load: LoadServer, trace: Trace): SimulationRun {
  const utilization = load.gpu_memory_utilization ?? given.memory.utilization;
  const profile = { ...given, memory: { ...given.memory, utilization } };
  return simulateTrace(trace, {
    profile,
    weights: load.weights,
    kvBlocks: load.kv_blocks ?? kvPoolBlocks(profile, load.weights, false, 1),
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

/** A trace whose prompts are those of `PROMPTS` requests before, after the same system prompt. */
export function repeatedPrompts(trace: Trace): Trace {
  const ids: number[] = [];
  const offsets = Int32Array.from({ length: trace.inputTokens.length + 1 }, (_, i) => {
    if (i === 0) return 0;
    const prompt = 1 + ((i - 1) % PROMPTS);
    const blocks = Math.floor(trace.inputTokens[i - 1] / BLOCK_TOKENS);
    for (let block = 0; block < blocks; block += 1) {
      ids.push(block < SYSTEM_BLOCKS ? block : prompt * 2 ** 20 + block);
    }
    return ids.length;
  });
  return { ...trace, prefixBlocks: { blockTokens: BLOCK_TOKENS, ids: Float64Array.from(ids), offsets } };
}
