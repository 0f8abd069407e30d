import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { quantile } from './quantile.ts';

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
