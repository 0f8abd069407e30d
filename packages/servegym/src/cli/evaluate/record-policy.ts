import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { agentsOf, type DatasetRow, record, tasksToPlay } from '@servegym/agents';
import { firstSeeds, type SeedSplit, SHIPPED_TABLE_URL } from '@servegym/environments';
import type { EnvironmentDefinition } from '@servegym/openenv';
import { counted } from '@servegym/simulator';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { toJSONSchema } from 'zod';
import { readInputs, readPolicies } from '../arguments/scenario-options.ts';
import { InputError } from '../failure.ts';
import { requireWritable, writeOutputFile } from '../files.ts';
import { sourceFolder, sourceHash, withJobs } from '../jobs.ts';
import { printResult } from '../output/print-result.ts';
import { showShare } from '../output/progress.ts';
import type { EvaluateOptions } from './command.ts';

/** Plays episodes for offline learning and writes them as Parquet, a row for each window. */
export async function recordPolicy(out: string, options: EvaluateOptions): Promise<void> {
  const { env, episodes, split = 'train', json, threads, queue } = options;
  await requireWritable(out);
  const { task, inputs } = await readInputs(options);
  const [policy, ...others] = await readPolicies(options);
  if (policy === undefined || others.length > 0 || 'model' in policy)
    throw new InputError('expected one policy beside --record, by its name or file');
  const { environment: entry, playable } = agentsOf(env);
  const [taskId, ...further] = tasksToPlay(env, task, [policy.found]);
  if (taskId === undefined || further.length > 0)
    throw new InputError(`expected --task, one of ${entry.tasks.ids().join(', ')}, got ${task}`);
  const seeds = firstSeeds(split as SeedSplit, episodes);
  const plan = { environment: env, policy: policy.found, taskIds: [taskId], seeds, inputs };
  const rows = await withJobs({ threads, queue }, (jobs) => record({ ...plan, onProgress: showShare }, jobs));
  showShare(1);
  const metadata = {
    environment: env,
    version: playable(inputs).version,
    simulator_hash: sourceHash([sourceFolder('@servegym/simulator'), sourceFolder('@servegym/environments')]),
    ...(entry.takes.includes('table') && { table_hash: inputs.table?.hash ?? shippedTableHash() }),
    task: String(taskId),
    policy: policy.found.policy.name,
    split,
    seeds: JSON.stringify([seeds[0], seeds.at(-1)]),
  };
  await writeOutputFile(out, [encodeDataset(rows, metadata, wholeColumns(entry.definition()))]);
  const result = { ...metadata, episodes, rows: rows.length, file: out };
  const text = `wrote ${counted(rows.length, 'window')} of ${counted(episodes, 'episode')} to ${out}`;
  printResult(json, result, { text: () => text });
}

function shippedTableHash(): string {
  return createHash('sha256').update(readFileSync(SHIPPED_TABLE_URL)).digest('hex');
}

/**
 * Writes rows as Parquet. The same rows give the same bytes.
 * @param metadata written as key-value metadata
 * @param isWhole true for a column of whole numbers only, which are then 64-bit integers
 */
function encodeDataset(
  rows: readonly DatasetRow[],
  metadata: Readonly<Record<string, string>>,
  isWhole: (column: string) => boolean,
): Uint8Array {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  return new Uint8Array(
    parquetWriteBuffer({
      columnData: names.map((name) => {
        const values = rows.map((row) => row[name] ?? null);
        const type = isWhole(name) ? 'INT64' : typeOf(values);
        const data = type === 'INT64' ? values.map(wholeNumber) : values;
        return { name, data, type, nullable: values.includes(null) };
      }),
      kvMetadata: Object.entries(metadata).map(([key, value]) => ({ key, value })),
      createdBy: 'servegym',
    }),
  );
}

function wholeNumber(value: DatasetRow[string]): bigint | null {
  return value === null ? null : BigInt(value as number);
}

const TYPES: Readonly<Record<string, 'STRING' | 'BOOLEAN' | 'JSON'>> = {
  ...{ string: 'STRING', boolean: 'BOOLEAN', object: 'JSON' },
};

/** Figures are doubles though they be whole: the next file may have others. */
function typeOf(values: readonly DatasetRow[string][]) {
  return TYPES[typeof values.find((value) => value !== null)] ?? 'DOUBLE';
}

/** Columns of every environment. */
const WHOLE = new Set(['episode_id', 'step', 'seed']);

/** Counts in `info`, which no schema describes, by the end of their path. */
const COUNTS = new Set([
  ...['arrived', 'completed', 'attained', 'refused', 'in_flight', 'held', 'waiting', 'running'],
  ...['kv_blocks', 'kv_blocks_used', 'kv_blocks_total', 'timestep', 'episode_length'],
  ...['prompt_len_bucket', 'rejected_requests', 'eviction_events', 'slo_violations'],
]);

interface Schema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
}

/** Tells whether a column holds whole numbers in every row of every file. */
function wholeColumns({ action, observation }: EnvironmentDefinition): (name: string) => boolean {
  const schemas: readonly (readonly [prefix: string, Schema])[] = [
    ['observation.', toJSONSchema(observation) as Schema],
    ['next_observation.', toJSONSchema(observation) as Schema],
    ['action.', toJSONSchema(action) as Schema],
    ['info.applied_action.', toJSONSchema(action) as Schema],
  ];
  return (name) => {
    if (WHOLE.has(name)) return true;
    for (const [prefix, schema] of schemas) {
      if (name.startsWith(prefix)) return isWhole(schema, name.slice(prefix.length).split('.'));
    }
    return name.startsWith('info.') && COUNTS.has(name.split('.').at(-1)!);
  };
}

function isWhole(schema: Schema | undefined, path: readonly string[]): boolean {
  const [key, ...rest] = path;
  if (key !== undefined) return isWhole(schema?.properties?.[key] ?? schema?.items, rest);
  return schema?.type === 'integer' || (schema?.enum?.every(Number.isSafeInteger) ?? false);
}
