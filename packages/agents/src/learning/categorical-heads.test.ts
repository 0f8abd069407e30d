import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RandomStream } from '@servegym/simulator';
import { CategoricalHeads } from './categorical-heads.ts';

const heads = new CategoricalHeads([3, 2]);
/** Probabilities .2 .3 .5 and .9 .1, and then uniform ones. */
const rows = () => Float64Array.from([2, 3, 5, 9, 1, 1, 1, 1, 1, 1], (odds) => Math.log(odds) + 100);

describe('CategoricalHeads', () => {
  it('normalizes each head of each row', () => {
    const logProbabilities = rows();
    heads.normalize(logProbabilities, 2);
    const expected = [0.2, 0.3, 0.5, 0.9, 0.1, 1 / 3, 1 / 3, 1 / 3, 1 / 2, 1 / 2];
    for (const [k, value] of logProbabilities.entries()) {
      assert.ok(Math.abs(Math.exp(value) - expected[k]) < 1e-12);
    }
  });

  it('normalizes logits of any size without overflow', () => {
    const logProbabilities = Float64Array.of(1000, -1000, 0, 5000, 5000);
    heads.normalize(logProbabilities, 1);
    assert.ok(Math.abs(logProbabilities[0]) < 1e-12);
    assert.equal(logProbabilities[1], -2000);
    assert.ok(Math.abs(logProbabilities[3] - Math.log(0.5)) < 1e-9);
  });

  it('draws every bin as often as its probability says', () => {
    const logProbabilities = rows();
    heads.normalize(logProbabilities, 2);
    const random = new RandomStream(1, 'actions');
    const counts = new Array(10).fill(0);
    const actions = new Int32Array(4);
    const draws = 20_000;
    for (let i = 0; i < draws; i++) {
      for (const row of [0, 1]) {
        heads.sample(logProbabilities, row, actions, random);
        counts[row * 5 + actions[row * 2]]++;
        counts[row * 5 + 3 + actions[row * 2 + 1]]++;
      }
    }
    for (const [k, count] of counts.entries()) {
      assert.ok(Math.abs(count / draws - Math.exp(logProbabilities[k])) < 0.015, `bin ${k}: ${count}`);
    }
  });

  it('favors one bin of each head', () => {
    const logits = new Float64Array(10);
    heads.favor(logits, Int32Array.of(2, 0, 1, 1), 3, 2);
    assert.deepEqual([...logits], [0, 0, 3, 3, 0, 0, 3, 0, 0, 3]);
  });

  it('finds the likeliest bin of each head', () => {
    const actions = new Int32Array(4);
    heads.mode(rows(), 0, actions);
    heads.mode(Float64Array.of(0, 0, 0, 0, 0, 1, 3, 2, 4, 7), 1, actions);
    assert.deepEqual([...actions], [2, 0, 1, 1]);
  });

  it('multiplies the probabilities of the heads', () => {
    const logProbabilities = rows();
    heads.normalize(logProbabilities, 2);
    const actions = Int32Array.of(1, 0, 2, 1);
    assert.ok(Math.abs(heads.logProbability(logProbabilities, 0, actions) - Math.log(0.3 * 0.9)) < 1e-12);
    assert.ok(Math.abs(heads.logProbability(logProbabilities, 1, actions) - Math.log(1 / 6)) < 1e-12);
  });

  it('differentiates log-probability and entropy as finite differences do', () => {
    const actions = Int32Array.of(0, 0, 1, 1);
    const weights = { logProbability: 0.7, entropy: -0.4 };
    const entropyOf = (logProbabilities: Float64Array) =>
      logProbabilities.slice(5, 10).reduce((sum, value) => sum - Math.exp(value) * value, 0);
    const objective = (logits: Float64Array) => {
      const logProbabilities = logits.slice();
      heads.normalize(logProbabilities, 2);
      const logProbability = heads.logProbability(logProbabilities, 1, actions);
      return weights.logProbability * logProbability + weights.entropy * entropyOf(logProbabilities);
    };
    const logits = rows();
    logits.set([0.3, -1, 2, 0.5, -0.5], 5);
    const logProbabilities = logits.slice();
    heads.normalize(logProbabilities, 2);
    const gradients = new Float64Array(10);
    const entropy = heads.gradient(
      logProbabilities,
      1,
      actions,
      weights.logProbability,
      weights.entropy,
      gradients,
    );
    assert.ok(Math.abs(entropy - entropyOf(logProbabilities)) < 1e-12);
    for (let k = 0; k < 10; k++) {
      const [above, below] = [logits.slice(), logits.slice()];
      above[k] += 1e-6;
      below[k] -= 1e-6;
      assert.ok(Math.abs(gradients[k] - (objective(above) - objective(below)) / 2e-6) < 1e-8, `logit ${k}`);
    }
  });
});
