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
  tableProfile,
} from '@servegym/profiles';
import {
  type OperatingPoint,
  parseOperatingPoints,
} from '../../packages/profiles/src/tables/operating-points.ts';
import type { PointAnswer, PointRow } from './fidelity.ts';
import type { FidelityInput } from './fidelity-job.ts';
import {
  type PointProfile,
  pointKvCache,
  pointModel,
  pointRecipe,
  pointWeights,
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
  readonly onProgress?: (share: number) => void;
}

/** Predicts public operating points with profiles made from kernel tables. */
export async function assessPoints(jobs: JobEngine, options: PointsOptions): Promise<PointRow[]> {
  const { folder, heldOut = false } = options;
  const points = parseOperatingPoints(await readPoints(folder), 'silicon_sample.csv', heldOut);
  const theirs = options.answers === undefined ? null : parseAnswers(options.answers);

  const servers = new Map<string, OperatingPoint[]>();
  for (const point of points) {
    const { engine, version, model, system, precision, tensor, data, expert } = point;
    const key = JSON.stringify([engine, version, model, system, precision, tensor, data, expert]);
    servers.set(key, [...(servers.get(key) ?? []), point]);
  }
  const known = new Map<string, Promise<ReadTables>>();
  const ours = new Map<string, PointAnswer>();
  const asked: OperatingPoint[][] = [];
  const list: Job[] = [];
  for (const same of servers.values()) {
    try {
      const served = await pointProfile(folder, same[0], known);
      asked.push(same);
      const input: FidelityInput = { part: 'points', served, points: same, files: {} };
      list.push({ kind: 'fidelity', input: input as unknown as Json });
    } catch (error) {
      if (!(error instanceof ProfileError)) throw error;
      for (const { id } of same) ours.set(id, { error: error.message });
    }
  }
  const results = (await jobs.run(list, {
    onProgress: ({ share }) => options.onProgress?.(share),
  })) as unknown as PointAnswer[][];
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
