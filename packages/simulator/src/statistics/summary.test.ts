import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { interquartileMean, percentileOfSorted, quantile, summarize } from './summary.ts';

describe('a summary', () => {
  it('interpolates percentiles as numpy does', () => {
    // Ranks by hand: (5 - 1) * 0.9 = 3.6 lies between 4 and 10; (5 - 1) * 0.99 = 3.96.
    const summary = summarize(Float64Array.of(10, 1, 4, 2, 3));
    assert.equal(summary.mean, 4);
    assert.equal(summary.p50, 3);
    assert.ok(Math.abs(summary.p90 - 7.6) < 1e-12);
    assert.ok(Math.abs(summary.p99 - 9.76) < 1e-12);
  });

  it('takes the middle between two values for the median of an even number', () => {
    assert.equal(summarize(Float64Array.of(4, 1, 2, 3)).p50, 2.5);
  });

  it('is the value itself for one value, and NaN for none', () => {
    assert.deepEqual(summarize(Float64Array.of(7)), { mean: 7, p50: 7, p90: 7, p99: 7 });
    assert.deepEqual(Object.values(summarize(new Float64Array())), [NaN, NaN, NaN, NaN]);
  });

  it('leaves the values in their order', () => {
    const values = Float64Array.of(3, 1, 2);
    summarize(values);
    assert.deepEqual([...values], [3, 1, 2]);
  });

  it('orders mean and percentiles inside the extremes', () => {
    const values = fc.float64Array({ min: 0, max: 1e6, minLength: 1, maxLength: 200, noNaN: true });
    fc.assert(
      fc.property(values, (sample) => {
        const { mean, p50, p90, p99 } = summarize(sample);
        const sorted = sample.slice().sort();
        const slack = 1e-9 * (1 + sorted.at(-1)!);
        assert.ok(sorted[0] - slack <= mean && mean <= sorted.at(-1)! + slack);
        assert.ok(
          sorted[0] <= p50 && p50 <= p90 + slack && p90 <= p99 + slack && p99 <= sorted.at(-1)! + slack,
        );
        assert.equal(percentileOfSorted(sorted, 0), sorted[0]);
        assert.equal(percentileOfSorted(sorted, 100), sorted.at(-1));
      }),
    );
  });
});

describe('quantile', () => {
  it('interpolates between neighbours, as numpy.quantile does', () => {
    assert.equal(quantile([10, 20, 30, 40], 0), 10);
    assert.equal(quantile([10, 20, 30, 40], 0.5), 25);
    assert.equal(quantile([10, 20, 30, 40], 1), 40);
    assert.ok(Math.abs(quantile([10, 20, 30, 40], 0.9) - 37) < 1e-12);
    assert.equal(quantile([5], 0.3), 5);
  });

  it('refuses no values', () => {
    assert.throws(() => quantile([], 0.5), /at least one value/);
  });
});

const values = fc.array(fc.double({ min: -1e6, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 60 });

describe('interquartileMean', () => {
  it('averages the middle half, in any order', () => {
    assert.equal(interquartileMean([8, 1, 7, 2, 6, 3, 5, 100]), (3 + 5 + 6 + 7) / 4);
  });

  it('leaves out a quarter rounded down at either end', () => {
    assert.equal(interquartileMean([1, 2, 3]), 2);
    assert.equal(interquartileMean([0, 1, 2, 3, 40]), 2);
    assert.equal(interquartileMean([0, 1, 2, 3, 4, 5, 60]), 3);
  });

  it('ignores how far off the outliers are', () => {
    assert.equal(interquartileMean([-1e9, 1, 2, 1e9]), interquartileMean([0, 1, 2, 3]));
  });

  it('lies between the least and the greatest value, and shifts with them', () => {
    fc.assert(
      fc.property(values, fc.integer({ min: -1000, max: 1000 }), (xs, shift) => {
        const iqm = interquartileMean(xs);
        assert.ok(iqm >= Math.min(...xs) - 1e-6 && iqm <= Math.max(...xs) + 1e-6);
        assert.ok(Math.abs(interquartileMean(xs.map((x) => x + shift)) - iqm - shift) < 1e-6);
      }),
    );
  });

  it('refuses no values', () => {
    assert.throws(() => interquartileMean([]), /at least one value/);
  });
});
