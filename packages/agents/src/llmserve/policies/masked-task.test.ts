import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { holdMaskedKnobs, llmserve, type ServeAction, type ServeObservation } from '@servegym/environments';
import { playEpisode } from '../../core/play-episode.ts';
import type { Policy } from '../../core/policy.ts';
import { MASKED_TASK, TURNED } from '../masked-task.fixture.ts';
import { BanditPolicy } from './bandit-policy.ts';
import { StaticPolicy } from './baseline-policies.ts';
import { createPolicy, listPolicies } from './catalogue.ts';
import { MpcPolicy } from './planner-policies.ts';
import { SHIPPED_FORMATS } from './shipped-policy.ts';
import { RegimePolicy } from './trained-policies.ts';

const { id: taskId, defaultAction: initialAction } = MASKED_TASK;

/** What a policy plays; the environment refuses an action that turns a masked knob. */
async function play(policy: Policy<ServeAction, ServeObservation>): Promise<readonly ServeAction[]> {
  const { actions } = await playEpisode(llmserve.create(), policy, {
    taskId,
    seed: 2_000_003,
    initialAction,
  });
  assert.equal(actions.length, MASKED_TASK.windows);
  return actions;
}

describe('a task of one’s own that masks knobs', () => {
  for (const { name } of listPolicies().filter((policy) => !(policy.name in SHIPPED_FORMATS))) {
    it(`is played by ${name}`, async () => {
      const actions = await play(createPolicy(name));
      const isConstant = ['default', 'static-tuned'].includes(name);
      assert.equal(new Set(actions.map((action) => JSON.stringify(action))).size > 1, !isConstant);
    });
  }

  it('is played by planners that are given configurations which turn masked knobs', async () => {
    assert.ok(
      (await play(new BanditPolicy([TURNED]))).every((action) => action.batch_cap === TURNED.batch_cap),
    );
    const planner = new MpcPolicy([TURNED]);
    await play(planner);
    for (const { action } of planner.explain().alternatives) {
      assert.deepEqual(action, holdMaskedKnobs(MASKED_TASK, action));
    }
  });

  it('is played masked by configurations that were searched before the knobs were masked', async () => {
    const held = holdMaskedKnobs(MASKED_TASK, TURNED);
    const regimes = [{ center: { arrivals: 1, prompts: 5 }, action: TURNED }];
    for (const policy of [
      new RegimePolicy({ taskId, regimes, training: {} }),
      new StaticPolicy({ taskId, action: TURNED, training: {} }),
    ]) {
      for (const action of await play(policy)) assert.deepEqual(action, held);
    }
  });
});
