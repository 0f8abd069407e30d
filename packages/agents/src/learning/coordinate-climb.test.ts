import assert from 'node:assert/strict';
import { test } from 'node:test';
import { climbCoordinates } from './coordinate-climb.ts';

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
