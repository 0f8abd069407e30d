import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { normalProbability } from '@servegym/simulator/statistics';
import {
  drawWorkload,
  evenQuantile,
  type FittedWorkload,
  findWorkload,
  logQuantile,
  PUBLIC_WORKLOAD_IDS,
  publicWorkload,
} from './fitted-workload.ts';

const models = PUBLIC_WORKLOAD_IDS.map(publicWorkload);
/** Times as many seconds for a model with few requests. */
const longer = ({ arrivals }: FittedWorkload) => (arrivals.perSecond < 1 ? 40 : 1);

describe('fitted workloads', () => {
  for (const model of models) {
    it(`draw the same for the same seed, and another for another (${model.id})`, () => {
      assert.deepEqual(drawWorkload(model, 7, 300), drawWorkload(model, 7, 300));
      assert.notDeepEqual(drawWorkload(model, 7, 300), drawWorkload(model, 8, 300));
    });

    it(`come at the rate of their trace, with its lengths (${model.id})`, () => {
      const seconds = 200_000 * longer(model);
      const { arrivalSeconds, inputTokens, outputTokens } = drawWorkload(model, 3, seconds);
      const { perSecond } = model.arrivals;
      const rate = arrivalSeconds.length / seconds;
      assert.ok(Math.abs(rate / perSecond - 1) < 0.1, `${rate} a second`);
      assert.ok(arrivalSeconds.every((at, i) => i === 0 || at >= arrivalSeconds[i - 1]));
      for (const [drawn, tabled] of [
        [inputTokens, model.lengths.input],
        [outputTokens, model.lengths.output],
      ] as const) {
        const sorted = [...drawn].sort((a, b) => a - b);
        for (const p of [0.1, 0.5, 0.9]) {
          const expected = logQuantile(model.lengths.probabilities, tabled, p);
          const ratio = sorted[Math.floor(p * sorted.length)] / expected;
          assert.ok(Math.abs(ratio - 1) < 0.1, `quantile ${p}: ${ratio} of the table's`);
        }
      }
    });

    it(`scale with the rate and the prompts that are asked for (${model.id})`, () => {
      const seconds = 20_000 * longer(model);
      const plain = drawWorkload(model, 3, seconds);
      const fast = drawWorkload(model, 3, seconds, { rateScale: 3 });
      const long = drawWorkload(model, 3, seconds, { promptScale: 2 });
      const ratio = fast.arrivalSeconds.length / plain.arrivalSeconds.length;
      assert.ok(Math.abs(ratio - 3) < 0.3, `${ratio} times the arrivals`);
      assert.deepEqual(long.arrivalSeconds, plain.arrivalSeconds);
      assert.deepEqual(long.outputTokens, plain.outputTokens);
      assert.ok(long.inputTokens.every((tokens, i) => Math.abs(tokens - 2 * plain.inputTokens[i]) <= 1));
    });

    it(`say that they come near (${model.id})`, () => {
      const { ks, heldOut } = model.fit;
      assert.ok(ks.input < 0.03 && ks.output < 0.03 && ks.counts < 0.06, JSON.stringify(ks));
      // Half a trace does not tell more of the other half than the halves are alike.
      assert.ok(heldOut.input < heldOut.halvesInput + 0.02 && heldOut.output < heldOut.halvesOutput + 0.02);
    });
  }
});

it('environments have the models that their tasks are drawn from, and no other', () => {
  assert.equal(findWorkload('ragpulse'), undefined);
  assert.equal(findWorkload('azure-code-2023'), publicWorkload('azure-code-2023'));
});

describe('the distributions of a workload', () => {
  it('knows the normal distribution', () => {
    for (const [z, p] of [
      [0, 0.5],
      [1, 0.8413447],
      [-1.959964, 0.025],
      [3, 0.9986501],
    ]) {
      assert.ok(Math.abs(normalProbability(z) - p) < 1e-6);
    }
  });

  it('reads between the quantiles', () => {
    assert.equal(evenQuantile([0, 10, 40], 0.75), 25);
    assert.equal(evenQuantile([0, 10, 40], 1), 40);
    assert.ok(Math.abs(logQuantile([0, 0.5, 1], [1, 10, 1000], 0.75) - 100) < 1e-9);
  });
});
