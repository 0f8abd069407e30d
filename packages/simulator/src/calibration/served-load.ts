import type { EngineProfile } from '../profiles/engine-profile.ts';
import { simulateTrace } from '../simulation/simulate-trace.ts';
import type { SimulationRun } from '../simulation/simulation-run.ts';
import type { Trace } from '../traces/trace.ts';
import { CalibrationError } from './calibration-error.ts';
import { type EngineConstants, VLLM_V1 } from './engine-constants.ts';
import { estimatedProfile } from './estimated-profile.ts';
import { findGpu } from './gpu.ts';
import { findModel } from './model.ts';

/** Latencies of a real server under a load of evenly spaced, equal requests. */
export interface ServedLoad {
  readonly run: string;
  readonly model: string;
  readonly gpu: string;
  /** GPUs of the tensor-parallel group. */
  readonly tp: number;
  readonly weights: 'FP16' | 'FP8';
  readonly max_num_seqs: number;
  readonly max_num_batched_tokens: number;
  readonly kv_blocks: number;
  /** One after the other: `rate` requests a second for `duration` seconds. */
  readonly stages: readonly { readonly duration: number; readonly rate: number }[];
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly ttft_mean_ms: number;
  readonly ttft_p99_ms: number;
  readonly e2e_mean_ms: number;
  readonly e2e_p99_ms: number;
}

/** All prompts of a load begin with a system prompt of 100 to 150 tokens; so many whole KV blocks are shared. */
const SHARED_BLOCKS = 7;
const BLOCK_TOKENS = 16;

const NUMBERS = [
  'tp',
  'max_num_seqs',
  'max_num_batched_tokens',
  'kv_blocks',
  'input_tokens',
  'output_tokens',
  'ttft_mean_ms',
  'ttft_p99_ms',
  'e2e_mean_ms',
  'e2e_p99_ms',
] as const satisfies readonly (keyof ServedLoad)[];

/** Reads a JSON list of served loads. @throws {CalibrationError} naming the run and the field that is wrong. */
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
  return loads.map((load: Record<string, unknown>, i) => {
    const wrong = (field: string, expected: string) =>
      new CalibrationError(
        'CALIBRATION_FILE',
        `${source}: expected \`${field}\` of load ${i + 1} to be ${expected}, got ${JSON.stringify(load?.[field]) ?? 'nothing'}`,
      );
    for (const field of NUMBERS) {
      const value = load?.[field];
      if (typeof value !== 'number' || !(value > 0)) throw wrong(field, 'a number above 0');
    }
    for (const field of ['run', 'model', 'gpu'] as const) {
      if (typeof load[field] !== 'string') throw wrong(field, 'a text');
    }
    if (load.weights !== 'FP16' && load.weights !== 'FP8') throw wrong('weights', 'FP16 or FP8');
    const stages = load.stages;
    if (!Array.isArray(stages) || !stages.every(({ duration, rate }) => duration > 0 && rate > 0)) {
      throw wrong('stages', 'a list of {duration, rate} above 0');
    }
    return load as unknown as ServedLoad;
  });
}

/** The requests of a load. */
export function servedLoadTrace({ run, stages, input_tokens, output_tokens }: ServedLoad): Trace {
  const arrivals: number[] = [];
  let start = 0;
  for (const { duration, rate } of stages) {
    const requests = Math.round(duration * rate);
    for (let i = 0; i < requests; i += 1) arrivals.push(1000 * (start + i / rate));
    start += duration;
  }
  const count = arrivals.length;
  return {
    source: `served load ${run}`,
    arrivalMs: Float64Array.from(arrivals),
    inputTokens: new Int32Array(count).fill(input_tokens),
    outputTokens: new Int32Array(count).fill(output_tokens),
    prefixBlocks: {
      blockTokens: BLOCK_TOKENS,
      ids: Float64Array.from({ length: count * SHARED_BLOCKS }, (_, i) => i % SHARED_BLOCKS),
      offsets: Int32Array.from({ length: count + 1 }, (_, i) => i * SHARED_BLOCKS),
    },
  };
}

/** Serves a load on the estimated profile of its GPU and model. */
export function simulateServedLoad(load: ServedLoad, constants: EngineConstants = VLLM_V1): SimulationRun {
  const profile: EngineProfile = estimatedProfile(
    findGpu(load.gpu),
    findModel(load.model),
    load.tp,
    constants,
  );
  return simulateTrace(servedLoadTrace(load), {
    profile,
    weights: load.weights,
    kvBlocks: load.kv_blocks,
    maxNumSeqs: load.max_num_seqs,
    maxNumBatchedTokens: load.max_num_batched_tokens,
  });
}
