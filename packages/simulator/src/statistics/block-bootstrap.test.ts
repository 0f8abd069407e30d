import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { blockResamples, percentileInterval } from './bootstrap.ts';

describe('resamples of blocks', () => {
  it('draw as many blocks as there are, each about as often, the same for the same seed', () => {
    const resamples = blockResamples(20, 7);
    assert.equal(resamples.length, 1000);
    const times = new Float64Array(20);
    for (const weights of resamples) {
      assert.equal(
        weights.reduce((sum, weight) => sum + weight, 0),
        20,
      );
      for (const [block, weight] of weights.entries()) times[block] += weight;
    }
    for (const each of times) assert.ok(Math.abs(each - 1000) < 150, `${each}`);
    assert.deepEqual(blockResamples(20, 7), resamples);
    assert.notDeepEqual(blockResamples(20, 8), resamples);
  });
});

describe('the interval of percentiles', () => {
  it('holds the middle 95 % of the values, in whatever order they come', () => {
    const values = Array.from({ length: 1000 }, (_, i) => (i * 37) % 1000);
    assert.deepEqual(percentileInterval(values), { low: 25, high: 975 });
    assert.deepEqual(percentileInterval([3]), { low: 3, high: 3 });
  });
});
