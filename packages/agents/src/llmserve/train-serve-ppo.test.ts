import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PpoUpdate } from '../learning/ppo.ts';
import { trainServePpo } from './train-serve-ppo.ts';

describe('trainServePpo', () => {
  it('learns the same on any number of threads, and tells how it goes', async () => {
    const updates: PpoUpdate[] = [];
    const plan = { taskId: 'static_workload', steps: 2_000, seed: 3 } as const;
    const alone = await trainServePpo({ ...plan, threads: 1, onUpdate: (update) => updates.push(update) });
    const together = await trainServePpo({ ...plan, threads: 2 });
    assert.deepEqual(together, alone);
    assert.equal(alone.taskId, 'static_workload');
    assert.deepEqual(alone.training, { algorithm: 'ppo', steps: updates.at(-1)!.steps, seed: 3 });
    assert.ok(updates.at(-1)!.steps >= 2_000);
    assert.ok(updates.every((update) => update.firstRatioError === 0));
  });

  it('stops early when told to, and keeps what it has learned', async () => {
    const stop = new AbortController();
    const { training } = await trainServePpo({
      ...{ taskId: 'static_workload', steps: 1e9, seed: 3, threads: 1, signal: stop.signal },
      onUpdate: () => stop.abort(),
    });
    assert.equal(training.steps, 2048);
  });
});
