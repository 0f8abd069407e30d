import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CrossEntropySearch, type SearchPoint } from './cross-entropy-search.ts';

const options = {
  seed: 1,
  bins: [new Array(8).fill(1 / 8), new Array(3).fill(1 / 3)],
  numbers: [{ mean: 0, deviation: 2 }],
  population: 40,
  elite: 8,
  smoothing: 0.3,
};

/** Best at bins 5 and 2 and number 1.5. */
const worth = ({ bins: [a, b], numbers: [x] }: SearchPoint) =>
  -Math.abs(a! - 5) - (b === 2 ? 0 : 2) - (x! - 1.5) ** 2;

function search(generations: number) {
  const found = new CrossEntropySearch(options);
  for (let generation = 0; generation < generations; generation++) {
    const points = found.draw();
    assert.equal(points.length, 40);
    found.learn(points, points.map(worth));
  }
  return found.likeliest();
}

describe('CrossEntropySearch', () => {
  it('comes to the best point, of bins and of numbers', () => {
    const { bins, numbers } = search(15);
    assert.deepEqual(bins, [5, 2]);
    assert.ok(Math.abs(numbers[0] - 1.5) < 0.05, `${numbers}`);
  });

  it('is deterministic', () => {
    assert.deepEqual(search(3), search(3));
  });
});
