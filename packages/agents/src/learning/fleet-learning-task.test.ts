import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FleetEpisode, fleet } from '@servegym/environments';
import { loadFleetPolicy } from '../policies/fleet-policies.ts';
import { FLEET_LEARNER } from './learners.ts';
import { RUNNING, TRUNCATED } from './learning-environment.ts';
import { createEnvironment } from './learning-tasks.ts';
import { trainPolicy } from './train-policy.ts';
import { decodeActor, encodeActor } from './trained-actor.ts';

const taskId = 'flash_crowds';

describe('fleet as a learner sees it', () => {
  it('writes all its numbers, and cuts episodes off after an hour', async () => {
    const task = fleet.tasks.shipped[taskId];
    const environment = await createEnvironment({ environment: 'fleet', task });
    const observation = new Float32Array(environment.observationSize).fill(Number.NaN);
    environment.reset(5, observation);
    const first = observation.slice();
    const bins = Int32Array.from(environment.initialBins);
    for (let step = 1; step <= 120; step++) {
      const { end } = environment.step(bins, observation);
      assert.equal(end, step < 120 ? RUNNING : TRUNCATED);
      assert.ok(observation.every((value) => Number.isFinite(value) && Math.abs(value) < 50));
    }
    environment.reset(5, observation);
    assert.deepEqual(observation, first);
  });

  it('has a head for each knob that decides something', () => {
    const codec = FLEET_LEARNER.codec(fleet.tasks.shipped[taskId]);
    assert.ok(!('second_replicas' in codec.bins));
    const { defaultAction } = fleet.tasks.shipped[taskId];
    assert.deepEqual(codec.decode(codec.encode(defaultAction)), defaultAction);
  });
});

describe('a network that is trained on fleet', async () => {
  const { files, metrics } = await trainPolicy({
    ...{ environment: 'fleet', task: taskId, algorithm: 'ppo' },
    ...{ steps: 1, seed: 3 },
  });
  const { weights, metadata } = decodeActor(files.policy);

  it('learns, and plays its task alone', () => {
    assert.ok(metrics[0]!.minibatches! > 0);
    const { policy, taskId: trained } = loadFleetPolicy(files.policy);
    assert.deepEqual([policy.name, trained], ['ppo', taskId]);
    policy.reset({ taskId, seed: 1 });
    const episode = new FleetEpisode({ ...fleet.tasks.shipped[taskId], windows: 2 }, 1);
    const observation = episode.observation();
    const step = { observation, reward: null, previousAction: episode.action, stepIndex: 0 };
    const action = policy.act(step);
    assert.deepEqual(policy.act(step), action);
    episode.step(action);
    assert.throws(() => policy.reset({ taskId: 'agents', seed: 1 }), { code: 'OTHER_TASK' });
  });

  const elsewhere: [Record<string, string>, string][] = [
    [{ environment: 'llmserve' }, 'POLICY_MISMATCH'],
    [{ version: '0' }, 'POLICY_MISMATCH'],
    [{ action_bins: '{}' }, 'POLICY_MISMATCH'],
    [{ task: 'nope' }, 'POLICY_TASK'],
  ];
  for (const [change, code] of elsewhere) {
    it(`is refused with ${code} when its ${Object.keys(change)} is another`, () => {
      const file = encodeActor(weights, { ...metadata, ...change });
      assert.throws(() => loadFleetPolicy(file), { code });
    });
  }
});
