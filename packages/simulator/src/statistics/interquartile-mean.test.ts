import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { interquartileMean } from './quantile.ts';

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
