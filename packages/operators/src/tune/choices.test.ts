import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findProfile } from '@servegym/profiles';
import { RandomStream, type WeightPrecision } from '@servegym/simulator';
import { type Candidate, vllmDefaults } from '../search/candidate.ts';
import type { LoadPoint } from '../search/load-point.ts';
import { evenTraffic, pointAt, SLO } from '../search/measured.fixture.ts';
import { choicesOf, controllerGain, frontPoints } from './choices.ts';

const profile = findProfile('h100-80gb-llama-3-8b');
const defaults = vllmDefaults(profile);
const traffic = evenTraffic(2);

interface Choice {
  readonly capacity: number;
  readonly ttft: number;
  readonly tpot: number;
  readonly weights?: WeightPrecision;
}

/** The points of choices that sustain these loads, with these latencies at the load 1. */
function front(choices: readonly Choice[]) {
  const at = ({ capacity }: Choice, load: number, changes?: Partial<LoadPoint>) =>
    pointAt([capacity, capacity], load, changes);
  return frontPoints(
    SLO,
    traffic,
    choices.map((choice, i) => ({
      profile,
      candidate: { ...defaults, maxNumSeqs: 8 + i, weights: choice.weights ?? 'FP16' },
      points: [0.5, 0.9, 1.1, 2].map((step) => at(choice, step * choice.capacity)),
      ...{ load: choice.capacity, score: choice.capacity },
    })),
    choices.map((choice) => [
      at(choice, 1, { ttftP99Ms: choice.ttft, tpotP99Ms: choice.tpot }),
      at(choice, 1.2),
    ]),
    1,
  );
}

const onFront = (choices: readonly Choice[]) => {
  const { front: found, others } = front(choices);
  assert.equal(found.length + others.length, choices.length);
  return choices.map((_, i) => found.some(({ settings }) => settings.maxNumSeqs === 8 + i));
};

describe('the Pareto front', () => {
  it('is what no other choice beats: more load, a shorter TTFT, a shorter TPOT or better weights', () => {
    const middle = { capacity: 2, ttft: 100, tpot: 20, weights: 'INT8' } as const;
    assert.deepEqual(onFront([middle]), [true]);
    assert.deepEqual(onFront([middle, { ...middle, capacity: 1.5 }]), [true, false]);
    assert.deepEqual(onFront([middle, { ...middle, ttft: 120 }]), [true, false]);
    assert.deepEqual(onFront([middle, { ...middle, tpot: 25 }]), [true, false]);
    assert.deepEqual(onFront([{ ...middle, weights: 'FP16' }, middle]), [true, false]);
    assert.deepEqual(onFront([middle, { ...middle, capacity: 1.5, ttft: 120, tpot: 25 }]), [true, false]);
    for (const better of [{ capacity: 3 }, { ttft: 50 }, { tpot: 10 }, { weights: 'FP16' }] as const) {
      const worse = { ...middle, capacity: 1.5, ttft: 120, tpot: 25 };
      assert.deepEqual(onFront([middle, { ...worse, ...better }]), [true, true], JSON.stringify(better));
    }
  });

  it('keeps choices that differ by less than a hundredth', () => {
    const choice = { capacity: 2, ttft: 100, tpot: 20 };
    assert.deepEqual(onFront([choice, { ...choice, ttft: 100.5 }]), [true, true]);
  });

  it('says what each choice sustains, in requests/s, and what its tokens cost', () => {
    const [point] = front([{ capacity: 2, ttft: 100, tpot: 20, weights: 'INT8' }]).front;
    assert.ok(Math.abs(point.sustainedRps - 20) < 0.1, `${point.sustainedRps}`);
    assert.deepEqual([point.ttftP99Ms, point.tpotP99Ms], [100, 20]);
    assert.equal(point.quality, profile.weights.INT8!.quality);
    const perHour = profile.gpu.count * profile.gpu.usdPerHour;
    const tokensPerHour = point.sustainedRps * 50 * 3600;
    assert.ok(Math.abs(point.usdPerMillionOutputTokens! / ((1e6 * perHour) / tokensPerHour) - 1) < 1e-9);
  });

  it('counts what was measured at the reference load too', () => {
    const points = [1, 1.8, 2.2].map((load) => pointAt([2, 2], load));
    const overloaded = pointAt([0.5, 0.5], 1.2);
    const choice = { profile, candidate: defaults, points, load: 2, score: 2 };
    const { front: found } = frontPoints(SLO, traffic, [choice], [[overloaded]], 1.2);
    assert.ok(found[0].sustainedRps < 12, `${found[0].sustainedRps}`);
  });

  it('is drawn through the 24 best, and four of each kind', () => {
    const ranked = Array.from({ length: 40 }, (_, i) => {
      const candidate: Candidate = { ...defaults, maxNumSeqs: 8 + i, weights: i < 30 ? 'FP8' : 'INT4' };
      return { profile, candidate, points: [], load: 1, score: 40 - i };
    });
    assert.deepEqual(
      choicesOf(ranked).map(({ score }) => 40 - score),
      [...Array.from({ length: 24 }, (_, i) => i), 30, 31, 32, 33],
    );
  });
});

const BLOCKS = 20;
const REQUESTS = 400;
const NONE = {
  ttftP99Ms: 1,
  tpotP99Ms: 1,
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
