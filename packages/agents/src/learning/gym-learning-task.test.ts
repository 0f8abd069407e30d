import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { inferencegym, SEED_SPLITS } from '@servegym/environments';
import { evaluatePolicy } from '../core/evaluate-policy.ts';
import { AGENTS } from '../registry.ts';
import { createEnvironment, learningTask } from './learning-tasks.ts';

const { createPolicy, loadPolicy, playable } = AGENTS.inferencegym;

import { RUNNING, TRUNCATED } from './learning-environment.ts';
import { trainPpo } from './ppo.ts';
import { decodeActor, encodeActor } from './trained-actor.ts';

const SEEDS = [0, 1, 2].map((i) => SEED_SPLITS.test.first + i);

async function scoreOf(policy: ReturnType<typeof createPolicy>, taskId: number): Promise<number> {
  const { overall } = await evaluatePolicy(playable(), policy, {
    taskIds: [taskId],
    seeds: SEEDS,
  });
  return overall.mean;
}

describe('inferencegym as a learner sees it', () => {
  it('writes all its numbers, and cuts episodes off after 200 steps', async () => {
    const task = inferencegym.tasks.shipped[3];
    const environment = await createEnvironment({ environment: 'inferencegym', task, own: null });
    const observation = new Float32Array(environment.observationSize).fill(Number.NaN);
    environment.reset(5, observation);
    const bins = Int32Array.from(environment.initialBins);
    for (let step = 1; step <= 200; step++) {
      const { end } = environment.step(bins, observation);
      assert.equal(end, step < 200 ? RUNNING : TRUNCATED);
      assert.ok(observation.every((value) => Number.isFinite(value) && Math.abs(value) < 50));
    }
  });

  it('takes PPO from the baseline to 0.65 and more on task 1 within 50,000 steps', async () => {
    const task = learningTask('inferencegym', { task: '1' });
    const { weights, steps } = await trainPpo({ ...task, steps: 30_000, seed: 0, threads: 1 });
    assert.ok(steps <= 50_000);
    const file = task.encodeActor(weights, { algorithm: 'ppo' });
    const { policy, taskId } = loadPolicy(file);
    assert.equal(taskId, 1);
    const [baseline, trained] = [await scoreOf(createPolicy('baseline'), 1), await scoreOf(policy, 1)];
    assert.ok(baseline > 0.3 && baseline < 0.4, `baseline ${baseline}`);
    assert.ok(trained >= 0.65, `trained ${trained}`);
    assert.throws(() => policy.reset({ taskId: 2, seed: 1 }), /the task 1 that the policy was trained for/);

    const { weights: same, metadata } = decodeActor(file);
    const elsewhere: Record<string, string>[] = [
      { environment: 'llmserve' },
      { version: '0' },
      { action_bins: '{}' },
      { task: '7' },
    ];
    for (const change of elsewhere) {
      assert.throws(() => loadPolicy(encodeActor(same, { ...metadata, ...change })), {
        code: /^POLICY_/,
      });
    }
  });
});

describe('the policies of inferencegym', () => {
  it('are named when one is not known', () => {
    assert.throws(() => createPolicy('heuristic'), /random, default, baseline, got "heuristic"/);
  });

  it('score the same each time they play', async () => {
    assert.equal(await scoreOf(createPolicy('random'), 3), await scoreOf(createPolicy('random'), 3));
  });
});
