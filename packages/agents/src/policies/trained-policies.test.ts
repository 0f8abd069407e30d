import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { llmserve } from '@servegym/environments';
import { playEpisode } from '../core/policy.ts';
import { networkPolicy, SERVE_LEARNER } from '../learning/learners.ts';
import { LEARNABLE } from '../learning/learning-tasks.ts';
import { trainPpo } from '../learning/ppo.ts';
import { createServePolicy, type ServePolicy, tunedConstant } from './serve-policies.ts';

describe('static-tuned', () => {
  const action = { ...llmserve.defaultAction, batch_cap: 48 };
  const policy = tunedConstant('bursty_workload', action);

  it('keeps its configuration', () => {
    policy.reset({ taskId: 'bursty_workload', seed: 1 });
    assert.equal(policy.act({} as never), action);
  });

  it('refuses another task', () => {
    assert.throws(() => policy.reset({ taskId: 'static_workload', seed: 1 }), {
      code: 'OTHER_TASK',
      message: 'Expected the task bursty_workload that the policy was trained for, got static_workload',
    });
  });
});

const { defaultAction } = llmserve.tasks.shipped.static_workload;

async function play(policy: ServePolicy, seed: number) {
  return playEpisode(llmserve.definition().create(), policy, {
    taskId: 'static_workload',
    seed,
    initialAction: defaultAction,
  });
}

describe('ppo', async () => {
  const task = LEARNABLE.llmserve.learningTask({ task: 'static_workload' });
  const { weights } = await trainPpo({ ...task, steps: 24_000, seed: 0, threads: 1 });
  const { static_workload } = llmserve.tasks.shipped;
  const networkOf = (): ServePolicy =>
    networkPolicy(SERVE_LEARNER, static_workload, { weights, training: {} });

  it('beats the default configuration on traffic that it has not seen, after seconds of training', async () => {
    let [trained, standard] = [0, 0];
    for (let seed = 2_000_000; seed < 2_000_006; seed++) {
      trained += (await play(networkOf(), seed)).return;
      standard += (await play(createServePolicy('default'), seed)).return;
    }
    assert.ok(trained > standard, `${trained} against ${standard} over six episodes`);
  });

  it('acts validly, and the same in the same episode', async () => {
    const policy = networkOf();
    const first = await play(policy, 1);
    for (const action of first.actions) llmserve.actionSchema.parse(action);
    await play(policy, 2);
    assert.deepEqual((await play(policy, 1)).actions, first.actions);
  });

  it('refuses another task than it was trained on', () => {
    assert.throws(() => networkOf().reset({ taskId: 'bursty_workload', seed: 0 }), {
      code: 'OTHER_TASK',
      message: 'Expected the task static_workload that the policy was trained for, got bursty_workload',
    });
  });
});
