import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RandomStream } from '@servegym/simulator';
import { ActorCritic } from './actor-critic.ts';
import { CLONING_DEFAULTS, cloneBehaviour, type Demonstrations } from './distill.ts';
import { simdKernels } from './kernels.ts';
import { plainKernels } from './plain-kernels.fixture.ts';
import { TrainedActor } from './trained-actor.ts';

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

  it('step on from a snapshot as if they had not stopped', () => {
    const step = (each: ActorCritic) => {
      each.adam.gradients.fill(0.3);
      each.descend(0.01, 1e9);
    };
    const whole = network();
    step(whole);
    const resumed = network();
    resumed.restore(whole.snapshot());
    for (const each of [whole, resumed]) step(each);
    assert.deepEqual(resumed.snapshot(), whole.snapshot());
    assert.equal(whole.snapshot().adamSteps, 2);
  });
});

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
