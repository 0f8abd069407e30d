import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { regretScore, type ScoreAnchors } from './grading.ts';

const anchors: ScoreAnchors = {
  default: 50,
  constant: 70,
  clairvoyant: 80,
};
const ROOM = 0.3;
const score = (total: number, change: Partial<ScoreAnchors> = {}, room = ROOM) =>
  regretScore(total, { ...anchors, ...change }, room);
const near = (a: number, b: number) => assert.ok(Math.abs(a - b) < 1e-12, `${a} and not ${b}`);

describe('the regret score', () => {
  it('is 0.20 for the default, 0.50 for the best constant and 0.95 for the clairvoyant, linear between', () => {
    near(score(50), 0.2);
    near(score(60), 0.35);
    near(score(70), 0.5);
    near(score(75), 0.725);
    near(score(80), 0.95);
  });

  it('halves one gap below the default and stays readable ten gaps below', () => {
    near(score(20), 0.1);
    near(score(-10), 0.2 / 3);
    assert.ok(score(-250) > 0.001);
  });

  it('goes on above the clairvoyant with the slope of the last segment, towards 1', () => {
    near(score(85), 1 - 0.05 * Math.exp((-0.045 / 0.05) * 5));
  });

  it('leaves the constant out where a task has no room to adapt', () => {
    near(score(65, {}, 0.04), 0.575);
    near(score(80, {}, 0.04), 0.95);
  });

  it('leaves the constant out on traffic where it is no better than the default, and where none is known', () => {
    near(score(65, { constant: 45 }), 0.575);
    near(score(65, { constant: 80 }), 0.575);
    near(score(65, { constant: null }), 0.575);
  });

  it('lies strictly inside (0, 1) and never falls as the return grows', () => {
    const anyReturn = fc.double({ min: -120, max: 120, noNaN: true });
    fc.assert(
      fc.property(anyReturn, anyReturn, anyReturn, anyReturn, anyReturn, (a, b, standard, constant, most) => {
        const change = { default: standard, constant, clairvoyant: most };
        const scores = [Math.min(a, b), Math.max(a, b)].map((total) => score(total, change));
        assert.ok(scores[0] > 0 && scores[1] < 1);
        assert.ok(scores[0] <= scores[1]);
      }),
    );
  });

  it('has no jump at the ends of its segments', () => {
    for (const knot of [50, 70, 80]) {
      assert.ok(Math.abs(score(knot + 1e-9) - score(knot - 1e-9)) < 1e-9);
    }
  });
});
