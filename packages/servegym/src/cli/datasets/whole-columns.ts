import type { EnvironmentDefinition } from '@servegym/openenv';
import { toJSONSchema } from 'zod';

/** What of an environment describes its columns. */
export type DescribedEnvironment = Pick<EnvironmentDefinition, 'action' | 'observation'>;

/** Columns of every environment. */
const WHOLE = new Set(['episode_id', 'step', 'seed']);

/** Counts in what is told beside an observation, which no schema describes, by the end of their path. */
const COUNTS = new Set([
  ...['arrived', 'completed', 'waiting', 'running', 'kv_blocks', 'kv_blocks_used', 'kv_blocks_total'],
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
