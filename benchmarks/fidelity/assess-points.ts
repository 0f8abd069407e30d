import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Job, JobEngine, Json } from '@servegym/jobs';
import {
  engineOverheads,
  findGpu,
  ProfileError,
  type ReadTables,
  readOperatorTables,
  type ServedModel,
  tableProfile,
} from '@servegym/profiles';
import {
  drawLengths,
  type EngineProfile,
  type KvPrecision,
  repeatTrace,
  simulateTrace,
  type Trace,
  type WeightPrecision,
} from '@servegym/simulator';
import { summarize } from '@servegym/simulator/statistics';
import {
  type OperatingPoint,
  type PointAnswer,
  type PointRow,
  parseOperatingPoints,
  pointModel,
} from './operating-points.ts';

/** GPUs by the folder of their kernel tables. */
const GPUS: Readonly<Record<string, string>> = {
  a100_sxm: 'a100-80gb',
  h100_sxm: 'h100-80gb',
  h200_sxm: 'h200-141gb',
  b200_sxm: 'b200-180gb',
  b300_sxm: 'b300-288gb',
  gb200: 'gb200-184gb',
  l40s: 'l40s-48gb',
};

/**
 * Memory of a GPU that neither weights nor KV take, GiB: activations of 8,192 tokens, logits of 1,024 sequences, buffers of
 * collectives, CUDA graphs. Points of vLLM that overflow the KV pool on H100 and B200 tell of 2 to 4.5; SGLang's share of the
 * memory is for weights and KV alone.
 */
const MEMORY_OVERHEAD_GIB = { vllm: 3, sglang: 0 };

/** Share of the memory that profiles from tables give an engine. */
const DEFAULT_SHARE = 0.9;

/** Versions of vLLM with the kernels of the oldest tables; recipes for 0.18 and 0.19 choose those of the newest. */
const OLD_TABLES = /^0\.1[0-7]\./;

export interface PointsOptions {
  /** The unpacked package aiconfigurator-core: kernel tables and operating points. */
  readonly folder: string;
  /** Text of another estimator's answers, one JSON object a line: `id`, and `ttft_ms` and `tpot_ms` or `error`. */
  readonly answers?: string;
  /** Default false: the rows that no constant was chosen by are left out. True: those alone. */
  readonly heldOut?: boolean;
}

/** Predicts public operating points with profiles made from kernel tables. */
export async function assessPoints(jobs: JobEngine, options: PointsOptions): Promise<PointRow[]> {
  const { folder, heldOut = false } = options;
  const points = parseOperatingPoints(await readPoints(folder), 'silicon_sample.csv', heldOut);
  const theirs = options.answers === undefined ? null : parseAnswers(options.answers);

  const servers = Map.groupBy(points, ({ engine, version, model, system, precision, tensor, data, expert }) =>
    JSON.stringify([engine, version, model, system, precision, tensor, data, expert]),
  );
  const known = new Map<string, Promise<ReadTables>>();
  const ours = new Map<string, PointAnswer>();
  const asked: OperatingPoint[][] = [];
  const list: Job[] = [];
  for (const same of servers.values()) {
    try {
      const served = await pointProfile(folder, same[0], known);
      asked.push(same);
      list.push({ kind: 'points', input: { served, points: same } as unknown as Json });
    } catch (error) {
      if (!(error instanceof ProfileError)) throw error;
      for (const { id } of same) ours.set(id, { error: error.message });
    }
  }
  const results = (await jobs.run(list)) as unknown as PointAnswer[][];
  for (const [i, answers] of results.entries()) {
    for (const [j, answer] of answers.entries()) ours.set(asked[i][j].id, answer);
  }
  return points.map((point) => ({
    point,
    ours: ours.get(point.id)!,
    theirs: theirs === null ? null : (theirs.get(point.id) ?? { error: 'no answer' }),
  }));
}

/** @throws {ProfileError} when GPU, model or tables are missing. */
async function pointProfile(
  folder: string,
  point: OperatingPoint,
  known: Map<string, Promise<ReadTables>>,
): Promise<PointProfile> {
  const { system, engine, version, tensor, data, expert } = point;
  const gpu = findGpu(GPUS[system] ?? system);
  const model = pointModel(point);
  const weights = pointWeights(point, model);
  const asked = engine === 'vllm' && OLD_TABLES.test(version) ? `${engine}-${version}` : engine;
  const key = `${gpu.id} ${asked}`;
  const reading = known.get(key) ?? readOperatorTables(folder, gpu, asked);
  known.set(key, reading);
  const { tables, measuredOn, engine: named } = await reading;
  const { memoryShare } = pointRecipe(point);
  const { profile } = tableProfile(tables, {
    ...{ gpu, measuredOn, model, weights },
    parallel: { tensor, pipeline: 1, data, expert },
    kvCache: pointKvCache(point),
    engine: named,
    overheads: engineOverheads(engine, version),
    memoryOverheadGiB:
      memoryShare === null ? MEMORY_OVERHEAD_GIB[engine] : (DEFAULT_SHARE - memoryShare) * gpu.memoryGiB,
    source: 'kernel tables',
    command: 'benchmarks/run.ts fidelity',
  });
  return { profile, weights };
}

async function readPoints(folder: string): Promise<string> {
  const paths = [['systems'], ['aiconfigurator_core', 'systems'], []].map((below) =>
    join(folder, ...below, 'silicon_sample.csv'),
  );
  const path = paths.find(existsSync);
  if (path !== undefined) return readFile(path, 'utf8');
  const expected = 'the unpacked package aiconfigurator-core with systems/silicon_sample.csv';
  throw new ProfileError('CALIBRATION_FILE', folder, expected, 'a folder without it');
}

function parseAnswers(text: string): Map<string, PointAnswer> {
  const answers = new Map<string, PointAnswer>();
  for (const [i, line] of text.trim().split('\n').entries()) {
    const answer = readAnswer(line);
    if (answer === null) {
      const expected = 'a JSON object with id, and ttft_ms and tpot_ms or error';
      throw new ProfileError('CALIBRATION_FILE', `answers:${i + 1}`, expected, `"${line}"`);
    }
    answers.set(...answer);
  }
  return answers;
}

function readAnswer(line: string): [string, PointAnswer] | null {
  try {
    const { id, error, ttft_ms: ttftMs, tpot_ms: tpotMs } = JSON.parse(line) as Record<string, unknown>;
    if (typeof id !== 'string') return null;
    if (typeof error === 'string') return [id, { error }];
    return typeof ttftMs === 'number' && typeof tpotMs === 'number' ? [id, { ttftMs, tpotMs }] : null;
  } catch {
    return null;
  }
}

/** Settings that a public operating point was measured with. */
interface PointRecipe {
  /** Token budget of an iteration (SGLang chunked_prefill_size). */
  readonly budget: number;
  /** Share of the memory for weights and KV (SGLang mem_fraction_static); `null`: the engine's default. */
  readonly memoryShare: number | null;
  /** Iterations between two looks for new requests (SGLang scheduler_recv_interval). */
  readonly receiveEvery: number;
}

/** Default token budget on GPUs of 70 GiB and more. */
const DEFAULTS: PointRecipe = { budget: 8192, memoryShare: null, receiveEvery: 1 };

/**
 * Settings of a point: of rows of InferenceX on SGLang those of its public recipes (SemiAnalysisAI/InferenceX,
 * benchmarks/single_node: dsr1_fp8_b200.sh, dsr1_fp4_b200.sh, dsr1_fp8_h200.sh, qwen3.5_fp8_b200.sh,
 * qwen3.5_bf16_b200.sh, glm5_fp8_b200.sh), else the engine's defaults.
 */
export function pointRecipe(point: OperatingPoint): PointRecipe {
  const { engine, source, system, model, precision, tensor, concurrency } = point;
  if (engine !== 'sglang' || source !== 'InferenceX') return DEFAULTS;
  const isB200 = system === 'b200_sxm';
  const large = { ...DEFAULTS, budget: 32_768, memoryShare: 0.82 };
  if (/GLM/.test(model)) return { ...large, memoryShare: 0.85 };
  if (!isB200) return large;
  const receiveEvery = concurrency < 16 ? 10 : 30;
  if (!/DeepSeek/.test(model)) return { ...large, receiveEvery };
  if (precision === 'fp4') return { ...large, budget: 16_384, memoryShare: 0.85, receiveEvery };
  if (tensor === 4) return { budget: 8192, memoryShare: 0.95, receiveEvery: 10 };
  return { ...large, receiveEvery };
}

/** A profile for a point, with the precision of the weights that the point was measured with. */
interface PointProfile {
  readonly profile: EngineProfile;
  readonly weights: WeightPrecision;
}

/** Shortest lengths that are drawn, over the nominal ones. */
const LEAST_LENGTH = 0.8;
/** More than any point has in flight. */
const MOST_SEQUENCES = 8192;

/**
 * Time by which a request that is sent with others delays the first iteration of them all, ms: a front end reads,
 * parses and tokenizes the requests of a burst in turns, so that none is scheduled before nearly all are. Chosen on the
 * open rows, of which the TTFT grows by half a millisecond for each request in flight more than with a front end that
 * has no limit, whatever model, GPU and parallelism.
 */
const BURST_MS = 5;
/** Prompts that a load generator draws unless it is told how many: AIPerf's default. */
const PROMPTS = 100;
const BLOCK_TOKENS = 16;
/** More than any prompt has. */
const MOST_BLOCKS = 1e6;
/** Longer than any warm-up takes. */
const WARM_UP_MS = 1e8;

/** Precision of the weights of a point. */
function pointWeights({ precision }: OperatingPoint, { checkpoint }: ServedModel): WeightPrecision {
  if (precision === 'fp8') return 'FP8';
  if (precision === 'fp4') return checkpoint === 'MXFP4' ? 'MXFP4' : 'NVFP4';
  return 'FP16';
}

/** Precision of the KV cache of a point: recipes for B200 set 8 bits, as the queues of points that overflow it tell. */
function pointKvCache({ system }: OperatingPoint): KvPrecision {
  return system === 'b200_sxm' ? 'FP8' : 'FP16';
}

/** Mean latencies of a closed loop with the engine's default settings. */
export function simulatePoint(point: OperatingPoint, { profile, weights }: PointProfile): PointAnswer {
  const { concurrency, inputTokens, outputTokens, repeatsPrompts } = point;
  const requests = point.requestsEach * concurrency;
  const { budget: maxNumBatchedTokens, receiveEvery } = pointRecipe(point);
  const common = {
    ...{ profile, weights, prefixCaching: repeatsPrompts },
    ...{ maxNumSeqs: MOST_SEQUENCES, maxNumBatchedTokens },
  };
  const range = { inputTokens, outputTokens, range: LEAST_LENGTH };
  const run = repeatsPrompts
    ? simulateTrace(repeatedPrompts(drawLengths({ requests: PROMPTS, ...range }), point), common)
    : simulateTrace(drawLengths({ requests, ...range }), { ...common, concurrency });
  const warmUp = run.ttftMs.length - requests;
  if (run.completed < run.ttftMs.length) return { error: `${run.rejected} requests do not fit the KV pool` };
  // The requests that start the loop are the only burst.
  const burstMs = (BURST_MS * concurrency * concurrency) / requests;
  const tpotMs = summarize(run.tpotMs.slice(warmUp).filter(Number.isFinite)).mean;
  // A request waits for half the interval at which SGLang looks for new ones; each look takes no time.
  const receiveMs = receiveEvery === 1 ? 0 : (receiveEvery / 2) * tpotMs;
  const ttftMs = summarize(run.ttftMs.slice(warmUp)).mean + burstMs + receiveMs;
  return { ttftMs, tpotMs };
}

/**
 * The load of a generator that goes through a list of prompts over and over: each client sends one request to warm up
 * and, when all are answered, one after the other.
 */
function repeatedPrompts(prompts: Trace, { concurrency, requestsEach }: OperatingPoint): Trace {
  const count = concurrency * (1 + requestsEach);
  const { source, inputTokens, outputTokens } = repeatTrace(prompts, count);
  const offsets = new Int32Array(count + 1);
  for (let i = 0; i < count; i += 1) offsets[i + 1] = offsets[i] + Math.floor(inputTokens[i] / BLOCK_TOKENS);
  const ids = new Float64Array(offsets[count]);
  for (let i = 0; i < count; i += 1) {
    const first = (i % PROMPTS) * MOST_BLOCKS;
    for (let at = offsets[i]; at < offsets[i + 1]; at += 1) ids[at] = first + at - offsets[i];
  }
  return {
    ...{ source, inputTokens, outputTokens, prefixBlocks: { blockTokens: BLOCK_TOKENS, ids, offsets } },
    arrivalMs: Float64Array.from({ length: count }, (_, i) => (i < concurrency ? 0 : WARM_UP_MS)),
    followUps: {
      previous: Int32Array.from({ length: count }, (_, i) => (i < 2 * concurrency ? -1 : i - concurrency)),
      thinkMs: new Float64Array(count),
    },
  };
}

/** The job `points`: answers for points of one server, of which equal ones are simulated once. */
export function runJob(input: Json): Json {
  const { served, points } = input as unknown as { served: PointProfile; points: OperatingPoint[] };
  const known = new Map<string, PointAnswer>();
  return points.map((point) => {
    const { concurrency, inputTokens, outputTokens, requestsEach, repeatsPrompts } = point;
    const key = JSON.stringify([concurrency, inputTokens, outputTokens, requestsEach, repeatsPrompts]);
    const answer = known.get(key) ?? simulatePoint(point, served);
    known.set(key, answer);
    return answer;
  });
}
