import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rankCorrelation } from './correlation.ts';

test('the rank correlation is 1 for the same order, -1 for the reverse one, and shares the ranks of equal values', () => {
  assert.equal(rankCorrelation([1, 2, 3], [10, 20, 90]), 1);
  assert.equal(rankCorrelation([1, 2, 3], [9, 5, 1]), -1);
  assert.equal(rankCorrelation([1, 2, 3, 4], [10, 20, 30, 4000]), 1);
  assert.equal(rankCorrelation([1, 2, 3, 4], [4, 3, 2, 1]), -1);
  // Ranks 0.5, 0.5, 2 and 0, 1, 2: 1.5 over the root of 1.5 x 2.
  assert.ok(Math.abs(rankCorrelation([1, 1, 2], [1, 2, 3]) - 1.5 / Math.sqrt(3)) < 1e-12);
  assert.ok(Math.abs(rankCorrelation([1, 2, 2, 4], [1, 2, 3, 4]) - 0.9487) < 1e-4);
});
