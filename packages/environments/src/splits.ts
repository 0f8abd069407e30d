import type { TaskSplit } from '@servegym/openenv/definition';

/** Seeds of the traffic, split so that nothing is tuned on what it is judged by. Both ends belong to the split. */
export const SEED_SPLITS = {
  train: { first: 0, last: 999_999 },
  validation: { first: 1_000_000, last: 1_099_999 },
  test: { first: 2_000_000, last: 2_099_999 },
} as const;

export type SeedSplit = keyof typeof SEED_SPLITS;

/** The first seeds of a split. */
export function firstSeeds(split: SeedSplit, count: number): number[] {
  return Array.from({ length: count }, (_, i) => SEED_SPLITS[split].first + i);
}

/** The split that a seed belongs to; `undefined` when it belongs to none. */
export function splitOfSeed(seed: number): SeedSplit | undefined {
  return (Object.keys(SEED_SPLITS) as SeedSplit[]).find(
    (split) => seed >= SEED_SPLITS[split].first && seed <= SEED_SPLITS[split].last,
  );
}

/** Seeds of each split that are listed for each task; the others of `SEED_SPLITS` can be played all the same. */
const LISTED = { train: 10_000, validation: 100, test: 100 } as const satisfies Record<SeedSplit, number>;

/**
 * The episodes of these tasks as the splits of a data set, for OpenEnv's Task API. Neighbours differ in their task, so that
 * the first of any split are of all tasks. `shifted` has the test seeds under each shift.
 */
export function taskSplits(taskIds: readonly string[], shifts: readonly string[]): TaskSplit[] {
  const seeds = (split: SeedSplit): TaskSplit => ({
    name: split,
    type: split,
    size: taskIds.length * LISTED[split],
    task: (index) => ({
      task_id: taskIds[index % taskIds.length],
      seed: SEED_SPLITS[split].first + Math.floor(index / taskIds.length),
    }),
  });
  const test = seeds('test');
  const shifted: TaskSplit = {
    name: 'shifted',
    type: 'test',
    size: shifts.length * test.size,
    task: (index) => ({
      ...test.task(Math.floor(index / shifts.length)),
      shift: shifts[index % shifts.length],
    }),
  };
  return [seeds('train'), seeds('validation'), test, shifted];
}
