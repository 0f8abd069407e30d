import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type LearningEnvironment, RUNNING, TRUNCATED } from './learning-environment.ts';
import { SerialEnvironments } from './vector-environment.ts';

/** Observes seed and the sum of the actions; ends once that reaches 3. */
function counter(): LearningEnvironment {
  let sum = 0;
  return {
    observationSize: 2,
    headSizes: [4],
    initialBins: [2],
    reset(seed, observation) {
      sum = 0;
      observation.set([seed, sum]);
    },
    step(action, observation) {
      sum += action[0]!;
      observation[1] = sum;
      return { reward: sum, end: sum >= 3 ? TRUNCATED : RUNNING };
    },
  };
}

describe('SerialEnvironments', () => {
  it('steps them together, and starts the next episode where one ends', () => {
    const episodes = [0, 0];
    const environments = new SerialEnvironments([counter(), counter()], (e) => 100 * e + episodes[e]!++);
    assert.deepEqual([...environments.observations], [0, 0, 100, 0]);
    assert.deepEqual([...environments.seeds], [0, 100]);
    assert.deepEqual([...environments.binsInForce], [2, 2]);

    environments.step(Int32Array.of(1, 3));
    assert.deepEqual([...environments.rewards], [1, 3]);
    assert.deepEqual([...environments.ends], [RUNNING, TRUNCATED]);
    assert.deepEqual([...environments.observations], [0, 1, 101, 0]);
    assert.deepEqual([...environments.lastObservations.subarray(2)], [100, 3]);
    assert.deepEqual([...environments.seeds], [0, 101]);
    assert.deepEqual([...environments.stepIndices], [1, 0]);
    assert.deepEqual([...environments.binsInForce], [1, 2]);

    environments.step(Int32Array.of(1, 1));
    assert.deepEqual([...environments.observations], [0, 2, 101, 1]);
    assert.deepEqual([...environments.stepIndices], [2, 1]);
  });

  it('refuses to be empty', () => {
    assert.throws(() => new SerialEnvironments([], () => 0), /at least one environment/);
  });
});
