import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RandomStream } from './random-stream.ts';

const draws = (stream: RandomStream, count: number) => Array.from({ length: count }, () => stream.uniform());
const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

describe('RandomStream', () => {
  it('repeats itself for the same seed and purpose', () => {
    assert.deepEqual(draws(new RandomStream(7, 'policy'), 20), draws(new RandomStream(7, 'policy'), 20));
  });

  it('differs by purpose, and by any bit of the seed', () => {
    const reference = draws(new RandomStream(7, 'policy'), 4);
    for (const other of [
      new RandomStream(7, 'bootstrap'),
      new RandomStream(6, 'policy'),
      new RandomStream(7 + 2 ** 32, 'policy'),
      new RandomStream(7 + 2 ** 52, 'policy'),
    ]) {
      assert.notDeepEqual(draws(other, 4), reference);
    }
  });

  it('is uniform, and unrelated between neighbouring seeds', () => {
    const first = Array.from({ length: 4000 }, (_, seed) => new RandomStream(seed, 'policy').uniform());
    assert.ok(Math.abs(mean(first) - 1 / 2) < 0.02);
    assert.ok(Math.abs(mean(first.map((x) => x * x)) - 1 / 3) < 0.02);
    const lagged = first.slice(1).map((x, i) => (x - 1 / 2) * (first[i]! - 1 / 2));
    assert.ok(Math.abs(mean(lagged)) < 0.005);
  });

  it('draws every integer of a range, ends included', () => {
    const stream = new RandomStream(0, 'policy');
    const seen = new Set(Array.from({ length: 200 }, () => stream.integer(3, 6)));
    assert.deepEqual([...seen].sort(), [3, 4, 5, 6]);
  });

  it('draws normals of mean 0 and variance 1', () => {
    const stream = new RandomStream(0, 'noise');
    const values = Array.from({ length: 20_000 }, () => stream.normal());
    assert.ok(Math.abs(mean(values)) < 0.03);
    assert.ok(Math.abs(mean(values.map((x) => x * x)) - 1) < 0.03);
    assert.ok(values.every(Number.isFinite));
  });

  it('refuses a seed that is not a non-negative safe integer', () => {
    for (const seed of [-1, 0.5, Number.NaN, 2 ** 53]) {
      assert.throws(
        () => new RandomStream(seed, 'policy'),
        /Expected `seed` to be an integer from 0 to 2\^53 - 1/,
      );
    }
  });
});
