import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { subtractTraceBaseline } from './ppo.ts';

function subtract(
  groupSize: number,
  rows: { seeds: number[]; stepIndices: number[]; advantages: number[] }[],
) {
  const advantages = Float64Array.from(rows.flatMap((row) => row.advantages));
  const places = {
    environments: rows[0].seeds.length,
    steps: rows.length,
    seeds: Float64Array.from(rows.flatMap((row) => row.seeds)),
    stepIndices: Int32Array.from(rows.flatMap((row) => row.stepIndices)),
  };
  subtractTraceBaseline(places, groupSize, advantages);
  return [...advantages];
}

describe('subtractTraceBaseline', () => {
  it('subtracts the mean of the others on the same trace at the same window', () => {
    const row = { seeds: [7, 7, 7], stepIndices: [4, 4, 4], advantages: [1, 2, 6] };
    assert.deepEqual(subtract(3, [row]), [1 - 4, 2 - 3.5, 6 - 1.5]);
  });

  it('cancels what the trace does to everybody', () => {
    const own = [1, -1, 3];
    const seeds = [7, 7, 7];
    const calm = { seeds, stepIndices: [0, 0, 0], advantages: own };
    const storm = { seeds, stepIndices: [1, 1, 1], advantages: own.map((advantage) => advantage - 50) };
    const [a, b, c, d, e, f] = subtract(3, [calm, storm]);
    assert.deepEqual([d, e, f], [a, b, c]);
  });

  it('keeps groups apart, and leaves alone who has nobody beside', () => {
    const row = {
      seeds: [7, 7, 8, 9, 5, 5],
      stepIndices: [0, 0, 0, 0, 3, 4],
      advantages: [1, 3, 10, 20, 30, 40],
    };
    assert.deepEqual(subtract(2, [row]), [-2, 2, 10, 20, 30, 40]);
    assert.deepEqual(subtract(1, [row]), row.advantages);
  });
});
