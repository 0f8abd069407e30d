import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RandomStream } from '@servegym/simulator';
import { CLONING_DEFAULTS, cloneBehaviour, type Demonstrations } from './behaviour-cloning.ts';
import { plainKernels } from './plain-kernels.fixture.ts';
import { simdKernels } from './simd-kernels.ts';
import { TrainedActor } from './trained-actor.ts';

const options = {
  ...CLONING_DEFAULTS,
  headSizes: [3, 2],
  hidden: [16],
  seed: 1,
  learningRate: 1e-2,
  minibatches: 240,
};

/** The first head says which third of its range a number is in, the second keeps what is in force. */
function demonstrations(rows: number, seed: number): Demonstrations {
  const random = new RandomStream(seed, 'demonstrations');
  const observations = Float32Array.from({ length: rows }, () => 90 * random.uniform());
  const binsInForce = Int32Array.from({ length: 2 * rows }, (_, i) => random.integer(0, i % 2 === 0 ? 2 : 1));
  const actions = binsInForce.map((bin, i) => (i % 2 === 0 ? Math.floor(observations[i / 2] / 30) : bin));
  return { observations, binsInForce, actions };
}

describe('cloneBehaviour', () => {
  it('does what the teacher did, on what the teacher has not seen', () => {
    const { weights, loss } = cloneBehaviour(demonstrations(2000, 1), options, simdKernels());
    assert.ok(loss < 0.5, `loss ${loss}`);
    const actor = new TrainedActor(weights, plainKernels());
    const { observations, binsInForce, actions } = demonstrations(500, 2);
    let same = 0;
    for (let row = 0; row < 500; row++) {
      const bins = binsInForce.slice(2 * row, 2 * row + 2);
      actor.act(observations.subarray(row, row + 1), bins);
      if (bins.join() === actions.slice(2 * row, 2 * row + 2).join()) same++;
    }
    assert.ok(same > 475, `${same} of 500`);
  });

  it('is deterministic', () => {
    const some = demonstrations(100, 1);
    const twice = [0, 1].map(() => cloneBehaviour(some, { ...options, minibatches: 2 }, simdKernels()));
    assert.deepEqual(twice[0], twice[1]);
  });

  it('refuses to learn from nothing', () => {
    assert.throws(() => cloneBehaviour(demonstrations(0, 1), options, plainKernels()), /at least one/);
  });
});
