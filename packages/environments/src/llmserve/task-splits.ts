import type { TaskSplit } from '@servegym/openenv/definition';
import { SHIFTS } from './shifts.ts';
import { SEED_SPLITS, type SeedSplit } from './splits.ts';

/** Seeds of each split that are listed for each task; the others of `SEED_SPLITS` can be played all the same. */
const LISTED = { train: 10_000, validation: 100, test: 100 } as const satisfies Record<SeedSplit, number>;

/**
 * The episodes of these tasks as the splits of a data set, for OpenEnv's Task API. Neighbours differ in their task, so that
 * the first of any split are of all tasks. `shifted` has the test seeds under each shift.
 */
export function taskSplits(taskIds: readonly string[]): TaskSplit[] {
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
    size: SHIFTS.length * test.size,
    task: (index) => ({
      ...test.task(Math.floor(index / SHIFTS.length)),
      shift: SHIFTS[index % SHIFTS.length],
    }),
  };
  return [seeds('train'), seeds('validation'), test, shifted];
}
