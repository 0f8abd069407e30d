import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { findGpu, type Gpu } from '../data/gpu.ts';
import { ProfileError } from '../schema/read-json.ts';
import {
  NEEDED_TABLES,
  type OperatorRow,
  type OperatorRows,
  OperatorTables,
  TABLE_FOLDERS,
} from './operator-tables.ts';

/** Kernel tables of one GPU and engine, and where they come from. */
export type ReadTables = Readonly<Awaited<ReturnType<typeof readOperatorTables>>>;

/** GPUs whose tables stand for others of the same architecture, by the tables' folder. */
export const MEASURED_ON: Readonly<
  Record<string, { readonly gpu: string; readonly others: readonly string[] }>
> = {
  a100_sxm: { gpu: 'a100-80gb', others: ['a100-40gb'] },
  h100_sxm: { gpu: 'h100-80gb', others: ['gh200-96gb', 'h100-pcie-80gb', 'h20-96gb'] },
  h200_sxm: { gpu: 'h200-141gb', others: [] },
  b200_sxm: { gpu: 'b200-180gb', others: [] },
  gb200: { gpu: 'gb200-184gb', others: [] },
  b300_sxm: { gpu: 'b300-288gb', others: [] },
  gb300: { gpu: 'gb300-288gb', others: [] },
  b60: { gpu: 'arc-pro-b60-24gb', others: [] },
  l40s: { gpu: 'l40s-48gb', others: ['l4-24gb'] },
  rtx_pro_6000_server: { gpu: 'rtx-pro-6000-96gb', others: [] },
};
/** GPU of the same architecture that has older tables of experts, by the tables' folder. */
const OLDER_EXPERTS: Readonly<Record<string, string>> = { h100_sxm: 'h200_sxm' };
const ENGINES: Readonly<Record<string, string>> = { vllm: 'vLLM', sglang: 'SGLang' };

/**
 * Reads the kernel tables of NVIDIA's aiconfigurator-core for one GPU and engine.
 *
 * @param folder The unpacked package, or its `systems/data`.
 * @param engine `vllm` or `sglang`, with a version (`vllm-0.24`) or the newest. Of each table the newest version is taken
 *   that is not newer than this one, else the oldest.
 * @throws {ProfileError} listing the GPUs, engines or versions there are.
 */
export async function readOperatorTables(folder: string, gpu: Gpu, engine: string) {
  const data = await dataFolder(folder);
  const there = await foldersIn(data);
  const measured = Object.keys(MEASURED_ON).filter((name) => there.includes(name));
  const name = measured.find((each) => {
    const { gpu: own, others } = MEASURED_ON[each];
    return own === gpu.id || others.includes(gpu.id);
  });
  if (name === undefined) {
    const known = measured.map((each) => [MEASURED_ON[each].gpu, ...MEASURED_ON[each].others].join(', '));
    throw wrong(folder, `tables of one of ${known.join(', ')}`, gpu.id);
  }
  const [framework = '', ...parts] = engine.toLowerCase().split('-');
  if (!Object.hasOwn(ENGINES, framework)) {
    throw wrong(folder, `an engine such as ${Object.keys(ENGINES).join(', ')} or vllm-0.24`, engine);
  }
  const version = parts.length === 0 ? null : parts.join('-');
  if (version !== null && !/^\d/.test(version)) throw wrong(folder, 'a version such as vllm-0.24', engine);

  const rows: Partial<Record<keyof OperatorRows, OperatorRow[]>> = {};
  const versions = new Map<string, string>();
  const borrowed: string[] = [];
  for (const [file, operator] of Object.entries(TABLE_FOLDERS)) {
    const path = (each: string) => join(data, name, operator, each);
    // SGLang's times are of a kernel that is 20 times slower than memory allows.
    const own =
      operator === 'quantize' && framework !== 'vllm'
        ? null
        : await findTable(path(framework), `${file}_perf.parquet`, version);
    if (own === null && NEEDED_TABLES.some((needed) => needed === file)) {
      const engines = await foldersIn(join(data, name, operator));
      const known = engines.filter((each) => Object.hasOwn(ENGINES, each));
      const got = known.length === 0 ? 'none' : `those of ${known.join(', ')}`;
      throw wrong(folder, `${operator} tables of ${framework} for ${gpu.id}`, got);
    }
    let read = own === null ? [] : await readRows(own.path);
    if (own !== null) versions.set(file, own.version);
    const like = OLDER_EXPERTS[name];
    if (file === 'moe' && like && version !== null && own !== null && !isUpTo(own.version, version)) {
      const other = (each: string) =>
        findTable(join(data, like, operator, framework), `${file}_perf.parquet`, each);
      const [before, after] = [await other(version), await other(own.version)];
      if (before && after?.version === own.version && before.version !== after.version) {
        read = asOlder(read, await readRows(before.path), await readRows(after.path));
        const { name: measured } = findGpu(MEASURED_ON[like].gpu);
        borrowed.push(`${file} ${before.version} of ${measured}, by its times against ${after.version}`);
      }
    }
    // An engine without kernels of its own for latent attention has the module that they are part of.
    const isShared = file !== 'generation_mla' && file !== 'mla_bmm';
    const lacking = isShared && (own === null || file === 'moe') ? Object.keys(ENGINES) : [];
    const there = new Set(read.map(expertKey));
    for (const other of lacking.filter((each) => each !== framework)) {
      const found = await findTable(path(other), `${file}_perf.parquet`, null);
      if (found === null) continue;
      const added = (await readRows(found.path)).filter((row) => own === null || !there.has(expertKey(row)));
      if (added.length === 0) continue;
      read.push(...added);
      borrowed.push(`${file} ${found.version} of ${ENGINES[other]}`);
    }
    if (read.length > 0) rows[file as keyof OperatorRows] = read;
  }
  return {
    tables: new OperatorTables(rows as OperatorRows),
    /** GPU that they were measured on. */
    measuredOn: findGpu(MEASURED_ON[name].gpu),
    /** Engine and newest version among them. */
    engine: { name: ENGINES[framework], version: [...versions.values()].sort(compareVersions).at(-1)! },
    /** Version of each table, for instance `gemm 0.24.0`, and those of the other engine for what this one's lack. */
    versions: [...[...versions].map(([file, taken]) => `${file} ${taken}`), ...borrowed],
  };
}

/**
 * Precision and shape of experts. Engines share kernels: the tables of one stand for what those of another lack, but not
 * those of FP8 by tensor for FP8 in blocks, which take longer.
 */
function expertKey({ moe_dtype, hidden_size, inter_size, num_experts, topk }: OperatorRow): string {
  return [String(moe_dtype).replace('_block', ''), hidden_size, inter_size, num_experts, topk].join();
}

/** Times of an older version: for each shape they differ from the newer one's as they do on another GPU. */
function asOlder(rows: OperatorRow[], before: readonly OperatorRow[], after: readonly OperatorRow[]) {
  const keyOf = (row: OperatorRow) => {
    const { moe_dtype, moe_tp_size, moe_ep_size, distribution, num_tokens } = row;
    return [moe_dtype, expertKey(row), moe_tp_size, moe_ep_size, distribution, num_tokens].join();
  };
  const [old, now] = [before, after].map(
    (all) => new Map(all.map((row) => [keyOf(row), Number(row.latency)])),
  );
  return rows.map((row) => {
    const [was, is] = [old.get(keyOf(row)), now.get(keyOf(row))];
    return was && is ? { ...row, latency: (Number(row.latency) * was) / is } : row;
  });
}

async function dataFolder(folder: string): Promise<string> {
  for (const below of [['systems', 'data'], ['aiconfigurator_core', 'systems', 'data'], ['data'], []]) {
    const path = join(folder, ...below);
    if ((await foldersIn(path)).some((name) => Object.hasOwn(MEASURED_ON, name))) return path;
  }
  const expected = 'the unpacked package aiconfigurator-core, with folders such as systems/data/h100_sxm';
  throw wrong(folder, expected, 'a folder without them');
}

async function findTable(folder: string, file: string, version: string | null) {
  const having: string[] = [];
  for (const each of await foldersIn(folder)) {
    if ((await readdir(join(folder, each))).includes(file)) having.push(each);
  }
  const versions = having.filter((each) => /^\d+(\.\d+)*/.test(each)).sort(compareVersions);
  if (versions.length === 0) return null;
  const taken =
    version === null ? versions.at(-1)! : (versions.findLast((each) => isUpTo(each, version)) ?? versions[0]);
  return { path: join(folder, taken, file), version: taken };
}

/** Whether a version is not newer than another, of which only the parts that are given count: 0.24.1 is up to 0.24. */
function isUpTo(version: string, limit: string): boolean {
  const count = numbersOf(limit).length;
  return compareVersions(numbersOf(version).slice(0, count).join('.'), limit) <= 0;
}

/** Below 0 where `a` is older; numbers count, part by part. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [numbersOf(a), numbersOf(b)];
  for (let i = 0; i < Math.max(left.length, right.length); i += 1) {
    const difference = (left[i] ?? 0) - (right[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

function numbersOf(version: string): number[] {
  return (version.match(/\d+/g) ?? []).map(Number);
}

async function readRows(path: string): Promise<OperatorRow[]> {
  // Twenty milliseconds, which commands without tables do not spend.
  const { asyncBufferFromFile, parquetReadObjects } = await import('hyparquet');
  const { compressors } = await import('hyparquet-compressors');
  try {
    return await parquetReadObjects({ file: await asyncBufferFromFile(path), compressors });
  } catch (error) {
    throw wrong(path, 'a Parquet file', `one that cannot be read: ${(error as Error).message}`);
  }
}

async function foldersIn(path: string): Promise<string[]> {
  try {
    const entries = await readdir(path, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  } catch {
    return [];
  }
}

function wrong(source: string, expected: string, got: string): ProfileError {
  return new ProfileError('CALIBRATION_TABLES', source, expected, got);
}
