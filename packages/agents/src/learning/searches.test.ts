import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import { CrossEntropySearch, type SearchPoint } from './cross-entropy-search.ts';
import { traceSeed } from './learning-environment.ts';
import { climbCoordinates } from './tune-rules.ts';

const schedule = { seed: 1, groupSize: 2, traces: { first: 100, last: 199 } };

function episodes(count: number, environment: number, changes: Partial<typeof schedule> = {}): number[] {
  return Array.from({ length: count }, (_, episode) =>
    traceSeed({ ...schedule, ...changes }, environment, episode),
  );
}

describe('traceSeed', () => {
  it('gives a group the same traces in the same order, and another group others', () => {
    assert.deepEqual(episodes(10, 0), episodes(10, 1));
    assert.notDeepEqual(episodes(10, 1), episodes(10, 2));
    assert.notDeepEqual(episodes(10, 0), episodes(10, 0, { seed: 2 }));
  });

  it('stays within its traces and reaches all of them', () => {
    const drawn = new Set(episodes(2000, 0));
    assert.equal(drawn.size, 100);
    assert.ok([...drawn].every((seed) => seed >= 100 && seed <= 199));
  });
});

const grid = { x: [0, 1, 2, 3, 4], y: [0, 1, 2, 3, 4] };

test('climbs one parameter at a time to a peak, and tells finalists apart on many traces', () => {
  let played = 0;
  const search = {
    grid,
    traces: { few: 1, many: 4 },
    // The first trace likes x = 4; the mean of four is best at (3, 1).
    play: ({ x, y }: { x: number; y: number }, trace: number) => {
      played++;
      return -((x - 3) ** 2) - (y - 1) ** 2 + (trace === 0 ? 2 * x : (-2 * x) / 3);
    },
  };
  const { parameters, meanReturn } = climbCoordinates(search, [{ x: 0, y: 4 }]);
  assert.deepEqual(parameters, { x: 3, y: 1 });
  assert.ok(Math.abs(meanReturn) < 1e-12);
  // No pair is played twice on a trace.
  assert.ok(played <= 25 * 4);
});

test('keeps the best end of its starts', () => {
  // Two peaks with a valley between them.
  const play = ({ x }: { x: number }) => [5, 0, 0, 0, 9][x]!;
  const search = { grid: { x: [0, 4] }, traces: { few: 1, many: 1 }, play };
  assert.equal(climbCoordinates(search, [{ x: 0 }, { x: 4 }]).meanReturn, 9);
});

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
