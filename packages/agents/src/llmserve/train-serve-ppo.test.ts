import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PpoUpdate } from '../learning/ppo.ts';
import { trainServePpo } from './train-serve-ppo.ts';

describe('trainServePpo', () => {
  it('learns the same on any number of threads, and tells how it goes', async () => {
    const updates: PpoUpdate[] = [];
    const plan = { taskId: 'static_workload', steps: 4_000, seed: 3 } as const;
    const alone = await trainServePpo({ ...plan, threads: 1, onUpdate: (update) => updates.push(update) });
    const together = await trainServePpo({ ...plan, threads: 2 });
    assert.deepEqual(together, alone);
    assert.equal(alone.taskId, 'static_workload');
    assert.deepEqual(alone.training, { algorithm: 'ppo', steps: updates.at(-1)!.steps, seed: 3 });
    assert.ok(updates.at(-1)!.steps >= 4_000);
    assert.ok(updates.every((update) => update.firstRatioError === 0));
  });
});
