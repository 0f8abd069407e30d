import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RandomStream } from '@servegym/simulator';
import { ActorCritic } from './actor-critic.ts';
import { plainKernels } from './plain-kernels.fixture.ts';

const HEADS = [2, 3];

/** A network without hidden layers, whose parameters are all 0. */
function network() {
  return new ActorCritic(plainKernels('float64'), { observationSize: 1, headSizes: HEADS, hidden: [] }, 2);
}

/** Probabilities of all bins, in thousandths. */
function probabilities(of: ActorCritic, binsInForce: readonly number[], observation = 0.5): number[] {
  const logs = of.logProbabilities(Float64Array.of(observation), Int32Array.from(binsInForce), 1);
  return Array.from(logs.subarray(0, 5), (log) => Math.round(1000 * Math.exp(log)));
}

describe('the actor and the critic', () => {
  it('choose at random while all parameters are 0', () => {
    assert.deepEqual(probabilities(network(), [0, 0]), [500, 500, 333, 333, 333]);
  });

  it('add the keep bonus to the bin in force of each head', () => {
    const keeping = network();
    keeping.keepBonus = Math.log(3);
    assert.deepEqual(probabilities(keeping, [1, 0]), [250, 750, 600, 200, 200]);
    assert.deepEqual(probabilities(keeping, [0, 2]), [750, 250, 200, 200, 600]);
  });

  it('begin nearly uniform, whatever is seen', () => {
    const fresh = network();
    fresh.initialize(new RandomStream(3, 'weights'));
    for (const [i, share] of probabilities(fresh, [0, 0], 1).entries()) {
      assert.ok(Math.abs(share - 1000 / HEADS[i < 2 ? 0 : 1]) < 20, `bin ${i}: ${share}`);
    }
    assert.ok(fresh.critic.forward(Float64Array.of(1), 1)[0] !== 0);
  });
});
