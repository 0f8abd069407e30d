import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type PpoUpdate, trainPpo } from '../../learning/ppo.ts';
import type { PpoCheckpoint } from '../../learning/ppo-checkpoint.ts';
import { decodeServeActor } from './policy-files.ts';
import { serveLearningTask } from './serve-learning-task.ts';

describe('a task of llmserve', () => {
  const task = serveLearningTask('static_workload');
  const plan = { ...task, steps: 4_000, seed: 3 };

  it('is learned the same on any number of threads, and after a stop', async () => {
    const updates: PpoUpdate[] = [];
    const checkpoints: PpoCheckpoint[] = [];
    const alone = await trainPpo({
      ...plan,
      threads: 1,
      onUpdate(update, checkpoint) {
        updates.push(update);
        checkpoints.push(checkpoint());
      },
    });
    assert.deepEqual(
      updates.map(({ steps }) => steps),
      [2048, 4096],
    );
    assert.equal(alone.steps, 4096);
    assert.ok(updates.every((update) => update.firstRatioError === 0));
    const [checkpoint] = checkpoints;
    assert.ok(checkpoint!.episodes.some(({ actions }) => actions.length > 0));
    const resumed = await trainPpo({ ...plan, threads: 2, start: { checkpoint: checkpoint! } });
    assert.ok(Buffer.from(file(resumed)).equals(file(alone)));
  });

  it('stops early when told to, and keeps what it has learned', async () => {
    const stop = new AbortController();
    const { steps } = await trainPpo({
      ...{ ...plan, steps: 1e9, threads: 1, signal: stop.signal },
      onUpdate: () => stop.abort(),
    });
    assert.equal(steps, 2048);
  });

  function file({ weights, steps }: Awaited<ReturnType<typeof trainPpo>>): Uint8Array {
    const bytes = task.encodeActor(weights, { steps });
    assert.equal(decodeServeActor(bytes).taskId, 'static_workload');
    return bytes;
  }
});
