import type { DatasetRow } from '@servegym/agents';
import type { EnvironmentDefinition } from '@servegym/openenv';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { toJSONSchema } from 'zod';

/** Metadata and column types of a file. */
export interface DatasetFile {
  /** Written as key-value metadata. */
  readonly metadata: Readonly<Record<string, string>>;
  /** True for a column of whole numbers only, which are then 64-bit integers. */
  readonly isWhole: (column: string) => boolean;
}

/** Writes rows as Parquet. The same rows give the same bytes. */
export function encodeDataset(rows: readonly DatasetRow[], { metadata, isWhole }: DatasetFile): Uint8Array {
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

/** Figures are doubles though they be whole: the next file may have others. */
function typeOf(values: readonly DatasetRow[string][]) {
  switch (typeof values.find((value) => value !== null)) {
    case 'string':
      return 'STRING';
    case 'boolean':
      return 'BOOLEAN';
    case 'object':
      return 'JSON';
    default:
      return 'DOUBLE';
  }
}

/** Schemas of an environment that describe its columns. */
export type DescribedEnvironment = Pick<
  EnvironmentDefinition<unknown, object, object>,
  'action' | 'observation'
>;

/** Columns of every environment. */
const WHOLE = new Set(['episode_id', 'step', 'seed']);

/** Counts in `info`, which no schema describes, by the end of their path. */
const COUNTS = new Set([
  ...[
    'arrived',
    'completed',
    'attained',
    'refused',
    'in_flight',
    'held',
    'waiting',
    'running',
    'kv_blocks',
    'kv_blocks_used',
    'kv_blocks_total',
  ],
  ...[
    'timestep',
    'episode_length',
    'prompt_len_bucket',
    'rejected_requests',
    'eviction_events',
    'slo_violations',
  ],
]);

interface Schema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
}

/** Tells whether a column holds whole numbers in every row of every file. */
export function wholeColumns({ action, observation }: DescribedEnvironment): (name: string) => boolean {
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
