import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RandomStream } from '@servegym/simulator';
import { controllerGain } from './controller-gain.ts';
import type { LoadPoint } from './load-point.ts';

const BLOCKS = 20;
const REQUESTS = 400;
const NONE = {
  ttftP50Ms: 1,
  ttftP99Ms: 1,
  tpotP50Ms: 1,
  tpotP99Ms: 1,
  e2eP99Ms: 1,
  values: [],
  excess: [],
  classRequests: [],
};

/** Candidates whose requests meet the limits with the given chance in each block. */
function pointsOf(chances: readonly ((block: number) => number)[]): LoadPoint[] {
  return chances.map((chance, c) => {
    const random = new RandomStream(c, 'good');
    const half = (block: number) =>
      Array.from({ length: REQUESTS / 2 }, () => random.uniform()).filter((draw) => draw < chance(block))
        .length;
    const blocks = Array.from({ length: BLOCKS }, (_, b) => b);
    return {
      ...{ load: 1, rate: 1, ...NONE, requests: blocks.map(() => REQUESTS) },
      ...{ goodEven: blocks.map(half), goodOdd: blocks.map(half) },
    };
  });
}

describe('what a controller could add', () => {
  it('is nothing when all settings are alike, although some are always ahead by chance', () => {
    const { gain, interval } = controllerGain(pointsOf(Array.from({ length: 30 }, () => () => 0.8)), 1);
    assert.ok(Math.abs(gain) < 0.02, `${gain}`);
    assert.ok(interval.low < 0.01);
  });

  it('is what there is when stretches of the traffic want different settings', () => {
    const { gain, interval, fixed } = controllerGain(
      pointsOf([(block) => (block % 2 === 0 ? 0.95 : 0.55), (block) => (block % 2 === 0 ? 0.5 : 0.95)]),
      1,
    );
    assert.ok(Math.abs(fixed - 0.74) < 0.05, `${fixed}`);
    assert.ok(Math.abs(gain - 0.2) < 0.05, `${gain}`);
    assert.ok(interval.low > 0.1);
  });
});
