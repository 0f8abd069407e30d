import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RandomStream } from '@servegym/simulator';
import { identityEnvironment } from '../../test/identity-environment.ts';
import { simdKernels } from './kernels.ts';
import { RUNNING } from './learning-environment.ts';
import { publishPolicy } from './rollout-player.ts';
import { type RolloutSource, startRollouts } from './rollout-threads.ts';
import { RunningNormalizer } from './running-normalizer.ts';
import { SerialRollouts } from './serial-rollouts.fixture.ts';

const module = new URL('../../test/identity-environment.ts', import.meta.url);
const ENVIRONMENTS = 5;
const STEPS = 12;
const plan = {
  seed: 7,
  schedule: { seed: 1, groupSize: 2, traces: { first: 0, last: 999 } },
  hidden: [3],
};

/** All that is written in two rollouts, more than two episodes. */
function play(source: RolloutSource): unknown[] {
  const random = new RandomStream(3, 'weights');
  const parameters = source.policy.parameters.map(() => random.normal());
  publishPolicy(source.policy, { parameters, observations: new RunningNormalizer(7), keepBonus: 1 });
  return [0, 1].map(() => {
    source.play();
    const { observations, binsInForce, actions, logProbabilities } = source.rollout;
    const { rewards, ends, seeds, stepIndices, nextObservations } = source.rollout;
    return [observations, binsInForce, actions, logProbabilities, rewards, ends, seeds, stepIndices]
      .map((values) => [...values])
      .concat([[...nextObservations]]);
  });
}

describe('threads that play rollouts', () => {
  const environments = Array.from({ length: ENVIRONMENTS }, identityEnvironment);
  const expected = play(new SerialRollouts(environments, STEPS, plan, simdKernels()));
  for (const threads of [1, 2, 3]) {
    it(`plays, on ${threads} threads, what the environments play in turn`, async () => {
      const source = await startRollouts({
        ...{ environments: ENVIRONMENTS, steps: STEPS, threads, module, settings: {}, plan },
      });
      try {
        assert.deepEqual(play(source), expected);
      } finally {
        await source.close();
      }
    });
  }

  it('tells of an environment that fails on another thread', async () => {
    const source = await startRollouts({
      ...{ environments: 2, steps: STEPS, threads: 2, module, settings: { failAt: 3 }, plan },
    });
    try {
      assert.throws(
        () => play(source),
        /An environment failed on a worker thread: Error: failed at window 3/,
      );
    } finally {
      await source.close();
    }
  });

  it('refuses more threads than environments', async () => {
    await assert.rejects(
      startRollouts({ environments: 2, steps: 1, threads: 3, module, settings: {}, plan }),
      /Expected from 1 to 2 threads, as many as environments, got 3/,
    );
  });
});

describe('SerialRollouts', () => {
  it('plays the same traces in a group, each action on what was seen, and an episode after the other', () => {
    const source = new SerialRollouts(
      Array.from({ length: ENVIRONMENTS }, identityEnvironment),
      STEPS,
      plan,
      simdKernels(),
    );
    play(source);
    const { observations, actions, rewards, seeds, stepIndices, ends } = source.rollout;
    for (let at = 0; at < ENVIRONMENTS * STEPS; at++) {
      const shown = observations.subarray(7 * at, 7 * at + 7);
      const named = shown[actions[2 * at]] + shown[4 + actions[2 * at + 1]];
      assert.equal(rewards[at], named / 2);
      assert.equal(ends[at] !== RUNNING, stepIndices[at] === 9);
    }
    assert.equal(seeds[0], seeds[1]);
    assert.equal(seeds[2], seeds[3]);
    assert.notEqual(seeds[0], seeds[2]);
  });

  it('refuses to be empty', () => {
    assert.throws(() => new SerialRollouts([], 1, plan, simdKernels()), /at least one environment/);
  });
});
