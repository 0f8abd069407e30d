import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { JobEngine, Json } from '@servegym/jobs';
import {
  findGpu,
  ProfileError,
  type ReadTables,
  readOperatorTables,
  type ServedModel,
  statedOverheads,
  tableProfile,
} from '@servegym/profiles';
import {
  drawLengths,
  type EngineProfile,
  repeatTrace,
  simulateTrace,
  type Trace,
  type WeightPrecision,
} from '@servegym/simulator';
import { summarize } from '@servegym/simulator/statistics';
import { PROMPTS, repeatedPrompts } from '../../packages/profiles/src/fits/served-load.ts';
import { MEASURED_ON } from '../../packages/profiles/src/tables/read-operator-tables.ts';
import { assumptionsOf } from './campaigns.ts';
import { BURST_MS, refit } from './left-out-constants.ts';
import {
  type OperatingPoint,
  type PointAnswer,
  type PointRow,
  parseOperatingPoints,
  pointModel,
} from './operating-points.ts';

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
  /** Another estimator's answers, see `parseAnswers`. */
  readonly answers?: ReturnType<typeof parseAnswers>;
  /** Default false: the rows that no constant was chosen by are left out. True: those alone. */
  readonly heldOut?: boolean;
  /** Pattern of the labels of the points that are assessed, with shipped constants alone. Default: all. */
  readonly only?: string;
  /** Default true: constants are fitted again, without each campaign and without each model. */
  readonly leftOut?: boolean;
}

/** Points of one server. */
export interface PointServer {
  readonly served: PointProfile;
  readonly points: readonly OperatingPoint[];
}

/** Predicts public operating points with profiles made from kernel tables. */
export async function assessPoints(jobs: JobEngine, options: PointsOptions): Promise<PointRow[]> {
  const { folder, heldOut = false, only, leftOut = !heldOut && only === undefined } = options;
  const all = parseOperatingPoints(await readPoints(folder), 'silicon_sample.csv', heldOut);
  const points = only === undefined ? all : all.filter((point) => new RegExp(only).test(labelOf(point)));
  if (points.length === 0) throw new Error(`expected --only to match a label such as "${labelOf(all[0])}"`);
  const asked = points.flatMap((point) => [
    { point, assumption: '' },
    ...assumptionsOf(point).map(({ name, settings }) => ({
      point: { ...point, settings },
      assumption: name,
    })),
  ]);
  const groups = Map.groupBy(asked, ({ point, assumption }) => {
    const { campaign, engine, version, model, system, precision, tensor, data, expert, settings } = point;
    const { memoryShare, kvCache, mixedChunk } = settings;
    const labels = [campaign, engine, version, model, system, precision, tensor, data, expert];
    return JSON.stringify([assumption, memoryShare, kvCache, mixedChunk, ...labels]);
  });
  const known = new Map<string, Promise<ReadTables>>();
  const ours = new Map<string, PointAnswer>();
  const keyOf = (id: string, assumption: string) => `${id} ${assumption}`;
  const servers: PointServer[] = [];
  const assumptions: string[] = [];
  for (const same of groups.values()) {
    const assumption = same[0].assumption;
    try {
      const served = await pointProfile(folder, same[0].point, known);
      servers.push({ served, points: same.map(({ point }) => point) });
      assumptions.push(assumption);
    } catch (error) {
      if (!(error instanceof ProfileError)) throw error;
      for (const { point } of same) ours.set(keyOf(point.id, assumption), { error: error.message });
    }
  }
  const answersOf = async (list: readonly PointServer[]) => {
    const inputs = list.map((input) => ({ kind: 'points', input: input as unknown as Json }));
    return (await jobs.run(inputs)) as unknown as PointAnswer[][];
  };
  const results = await answersOf(servers);
  for (const [i, { points: of }] of servers.entries())
    for (const [j, { id }] of of.entries()) ours.set(keyOf(id, assumptions[i]), results[i][j]);
  const plain = servers.filter((_, i) => assumptions[i] === '');
  const refitted = leftOut ? await refit(plain, answersOf) : null;
  return points.map((point) => ({
    point,
    ours: ours.get(keyOf(point.id, ''))!,
    assumed: Object.fromEntries(
      assumptionsOf(point).map(({ name }) => [name, ours.get(keyOf(point.id, name))!]),
    ),
    refitted: refitted?.get(point.id) ?? null,
    theirs: options.answers ? (options.answers.get(point.id) ?? { error: 'no answer' }) : null,
  }));
}

function labelOf({ engine, model, system, version, campaign, concurrency }: OperatingPoint): string {
  return `${engine} ${model} ${system} ${version} ${campaign} ${concurrency}`;
}

/** @throws {ProfileError} when GPU, model or tables are missing. */
async function pointProfile(
  folder: string,
  point: OperatingPoint,
  known: Map<string, Promise<ReadTables>>,
): Promise<PointProfile> {
  const { system, engine, version, tensor, data, expert, settings } = point;
  const { memoryShare, kvCache, asyncScheduling, mixedChunk, release, expertParallel } = settings;
  const gpu = findGpu(MEASURED_ON[system]?.gpu ?? system);
  const model = pointModel(point);
  const weights = pointWeights(point, model);
  const asked = engine === 'vllm' && OLD_TABLES.test(version) ? `${engine}-${version}` : engine;
  const key = `${gpu.id} ${asked}`;
  const reading = known.get(key) ?? readOperatorTables(folder, gpu, asked);
  known.set(key, reading);
  const { tables, measuredOn, engine: named } = await reading;
  const { profile } = tableProfile(tables, {
    ...{ gpu, measuredOn, model, weights },
    parallel: { tensor, pipeline: 1, data, expert: expertParallel ? tensor : expert },
    kvCache,
    engine: named,
    overheads: statedOverheads(engine, release ?? version, asyncScheduling || undefined).values,
    memoryOverheadGiB:
      MEMORY_OVERHEAD_GIB[engine] + (DEFAULT_SHARE - (memoryShare ?? DEFAULT_SHARE)) * gpu.memoryGiB,
    source: 'kernel tables',
    command: 'benchmarks/run.ts fidelity',
  });
  const prefillFirst = profile.engine.prefillFirst === true && !mixedChunk;
  return { profile: { ...profile, engine: { ...profile.engine, prefillFirst } }, weights, burstMs: BURST_MS };
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

/**
 * Another estimator's answers, by the ids of points and the files of contributed measurements.
 * @param text one JSON object a line: `id`, and `ttft_ms` and `tpot_ms` or `error`
 */
export function parseAnswers(text: string): ReadonlyMap<string, PointAnswer> {
  const answers = text
    .trim()
    .split('\n')
    .map((line, i) => {
      const answer = readAnswer(line);
      if (answer !== null) return answer;
      const expected = 'a JSON object with id, and ttft_ms and tpot_ms or error';
      throw new ProfileError('CALIBRATION_FILE', `answers:${i + 1}`, expected, `"${line}"`);
    });
  return new Map(answers);
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

/** A profile for a point, with the precision of the weights that the point was measured with. */
interface PointProfile {
  readonly profile: EngineProfile;
  readonly weights: WeightPrecision;
  /**
   * Time by which a request that is sent with others delays the first iteration of them all, ms: a front end reads, parses
   * and tokenizes the requests of a burst in turns, so that none is scheduled before nearly all are.
   */
  readonly burstMs: number;
}

/** More than any point has in flight. */
const MOST_SEQUENCES = 8192;

/** Longer than any warm-up takes. */
const WARM_UP_MS = 1e8;

/** Precision of the weights of a point. */
function pointWeights({ precision }: OperatingPoint, { checkpoint }: ServedModel): WeightPrecision {
  if (precision === 'fp8') return 'FP8';
  if (precision === 'fp4') return checkpoint === 'MXFP4' ? 'MXFP4' : 'NVFP4';
  return 'FP16';
}

/** Mean latencies of a closed loop with the engine's default settings. */
export function simulatePoint(
  point: OperatingPoint,
  { profile, weights, burstMs }: PointProfile,
): PointAnswer {
  const { concurrency, inputTokens, outputTokens, settings } = point;
  const { requestsEach, leastLength, repeatsPrompts, budget, receiveEvery, runsAtOnce, drafts } = settings;
  const requests = requestsEach * (runsAtOnce ?? concurrency);
  const received = { ...profile, engine: { ...profile.engine, schedulerRecvInterval: receiveEvery } };
  const common = {
    ...{ profile: received, weights, prefixCaching: repeatsPrompts },
    ...{ maxNumSeqs: Math.min(runsAtOnce ?? MOST_SEQUENCES, budget), maxNumBatchedTokens: budget },
    speculationDepth: drafts,
  };
  const range = { inputTokens, outputTokens, range: leastLength };
  const run = repeatsPrompts
    ? simulateTrace(warmedUp(drawLengths({ requests: PROMPTS, ...range }), point), common)
    : simulateTrace(drawLengths({ requests, ...range }), { ...common, concurrency });
  const warmUp = run.ttftMs.length - requests;
  if (run.completed < run.ttftMs.length) return { error: `${run.rejected} requests do not fit the KV pool` };
  // The requests that start the loop are the only burst.
  const burst = (burstMs * Math.min(concurrency, requests) ** 2) / requests;
  const tpotMs = summarize(run.tpotMs.slice(warmUp).filter(Number.isFinite)).mean;
  const ttftMs = summarize(run.ttftMs.slice(warmUp)).mean + burst;
  return { ttftMs, tpotMs };
}

/**
 * The load of a generator that goes through a list of prompts over and over: each client sends one request to warm up
 * and, when all are answered, one after the other.
 */
function warmedUp(prompts: Trace, { concurrency, settings }: OperatingPoint): Trace {
  const count = concurrency * (1 + settings.requestsEach);
  return {
    ...repeatedPrompts(repeatTrace(prompts, count), 0),
    arrivalMs: Float64Array.from({ length: count }, (_, i) => (i < concurrency ? 0 : WARM_UP_MS)),
    followUps: {
      previous: Int32Array.from({ length: count }, (_, i) => (i < 2 * concurrency ? -1 : i - concurrency)),
      thinkMs: new Float64Array(count),
    },
  };
}

/** The job `points`: answers for points of one server, of which equal ones are simulated once. */
export function runJob(input: Json): Json {
  const { served, points } = input as unknown as PointServer;
  const known = new Map<string, PointAnswer>();
  return points.map((point) => {
    const { concurrency, inputTokens, outputTokens, settings } = point;
    const key = JSON.stringify([concurrency, inputTokens, outputTokens, settings]);
    const answer = known.get(key) ?? simulatePoint(point, served);
    known.set(key, answer);
    return answer;
  });
}
