import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RUNNING, TERMINATED, TRUNCATED } from './learning-environment.ts';
import { generalizedAdvantages, subtractTraceBaseline } from './ppo.ts';

const GAMMA = 0.9;
const LAMBDA = 0.5;

function advantages(
  environments: number,
  steps: { reward: number; value: number; end?: number; next?: number }[],
  gamma = GAMMA,
  lambda = LAMBDA,
): number[] {
  const result = new Float64Array(steps.length);
  generalizedAdvantages(
    {
      environments,
      steps: steps.length / environments,
      rewards: Float64Array.from(steps, ({ reward }) => reward),
      values: Float64Array.from(steps, ({ value }) => value),
      ends: Uint8Array.from(steps, ({ end }) => end ?? RUNNING),
      nextValues: Float64Array.from(steps, ({ next }) => next ?? Number.NaN),
    },
    gamma,
    lambda,
    result,
  );
  return [...result];
}

function assertNear(actual: number[], expected: number[]) {
  assert.equal(actual.length, expected.length);
  for (const [i, value] of actual.entries()) assert.ok(Math.abs(value - expected[i]) < 1e-12, `${actual}`);
}

describe('generalizedAdvantages', () => {
  it('discounts the errors of the critic, by hand', () => {
    const deltas = [1 + 0.9 * 3 - 2, 2 + 0.9 * 4 - 3, 3 + 0.9 * 5 - 4];
    assertNear(
      advantages(1, [
        { reward: 1, value: 2 },
        { reward: 2, value: 3 },
        { reward: 3, value: 4, next: 5 },
      ]),
      [deltas[0] + 0.45 * deltas[1] + 0.45 ** 2 * deltas[2], deltas[1] + 0.45 * deltas[2], deltas[2]],
    );
  });

  it('expects nothing after the end of an episode', () => {
    assertNear(
      advantages(1, [
        { reward: 1, value: 2, end: TERMINATED, next: 100 },
        { reward: 7, value: 5, next: 0 },
      ]),
      [1 - 2, 7 - 5],
    );
  });

  it('bootstraps where a time limit cut the episode off', () => {
    assertNear(
      advantages(1, [
        { reward: 1, value: 2, end: TRUNCATED, next: 100 },
        { reward: 7, value: 5, next: 0 },
      ]),
      [1 + 0.9 * 100 - 2, 7 - 5],
    );
  });

  it('is the discounted return less the value when lambda is 1', () => {
    const steps = [
      { reward: 1, value: 0.3 },
      { reward: -2, value: 0.2 },
      { reward: 4, value: 0.1, end: TERMINATED },
    ];
    assertNear(advantages(1, steps, 0.9, 1), [1 - 1.8 + 3.24 - 0.3, -2 + 3.6 - 0.2, 4 - 0.1]);
  });

  it('keeps environments apart', () => {
    const a = [
      { reward: 1, value: 2 },
      { reward: 2, value: 3, next: 4 },
    ];
    const b = [
      { reward: 5, value: 1, end: TERMINATED },
      { reward: 6, value: 2, next: 3 },
    ];
    const together = advantages(2, [a[0], b[0], a[1], b[1]]);
    assertNear([together[0], together[2]], advantages(1, a));
    assertNear([together[1], together[3]], advantages(1, b));
  });
});

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
