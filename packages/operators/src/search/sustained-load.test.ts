import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findProfile } from '@servegym/profiles';
import fc from 'fast-check';
import { type Candidate, vllmDefaults } from './candidate.ts';
import { fewestThatHold, wholeGroups } from './evaluator.ts';
import { type LoadPoint, sloUse } from './load-point.ts';
import { evaluatorOf, evenTraffic, pointAt as pointOfBlocks, SLO } from './measured.fixture.ts';
import { findSustainedLoad, LEAST_LOAD, MOST_LOAD, sustainedLoad } from './sustained-load.ts';

/** A server that sustains `capacity` in both of two blocks. */
const pointAt = (capacity: number, load: number) => pointOfBlocks([capacity, capacity], load);

describe('the sustained load', () => {
  it('is found from any guess', () => {
    const number = (min: number, max: number) => fc.double({ min, max, noNaN: true });
    fc.assert(
      fc.property(number(0.05, 100), number(0.05, 100), number(1.1, 2), (capacity, guess, step) => {
        const measure = (load: number) => pointAt(capacity, load);
        const points = findSustainedLoad(measure, SLO, { guess, step, tolerance: 1.05 });
        const found = sustainedLoad(points, SLO);
        assert.ok(Math.abs(found / capacity - 1) < 0.03, `${found} for ${capacity}`);
        const [holds, fails] = [
          points.findLast((point) => sloUse(point, SLO) <= 1),
          points.find((point) => sloUse(point, SLO) > 1),
        ];
        assert.ok(fails!.load / holds!.load <= 1.05, `${holds!.load} to ${fails!.load}`);
      }),
    );
  });

  it('is bracketed by halving ratios', () => {
    const points = findSustainedLoad((load) => pointAt(1.5, load), SLO, {
      guess: 1,
      step: 4,
      tolerance: 1.5,
    });
    assert.deepEqual(
      points.map(({ load }) => load),
      [1, Math.SQRT2, 2, 4],
    );
  });

  it('is none where even the least load is too much', () => {
    const measure = (load: number) => pointAt(1e-6, load);
    const points = findSustainedLoad(measure, SLO, { guess: 1, step: 2, tolerance: 1.1 });
    assert.equal(points[0].load, LEAST_LOAD);
    assert.equal(sustainedLoad(points, SLO), 0);
  });

  it('is at least the largest load that is tried, where that holds too', () => {
    const points = findSustainedLoad((load) => pointAt(1e6, load), SLO, {
      guess: 1,
      step: 2,
      tolerance: 1.1,
    });
    assert.equal(points.at(-1)!.load, MOST_LOAD);
    assert.equal(sustainedLoad(points, SLO), MOST_LOAD);
  });

  it('is not looked for below the floor', () => {
    const measure = (load: number) => pointAt(0.5, load);
    const points = findSustainedLoad(measure, SLO, { guess: 2, step: 2, tolerance: 1.1, floor: 2 });
    assert.equal(points.length, 1);
    assert.ok(sustainedLoad(points, SLO) < 2);
  });

  it('follows the weights of the blocks', () => {
    const uneven = (load: number): LoadPoint => ({
      ...pointAt(1, load),
      excess: [[Math.min(500, 10 * load ** 4), Math.min(500, 1.25 * load ** 4)]],
    });
    const points = [0.5, 0.75, 1, 1.25, 1.5].map(uneven);
    assert.ok(sustainedLoad(points, SLO, [2, 0]) < sustainedLoad(points, SLO));
    assert.ok(sustainedLoad(points, SLO, [0, 2]) > sustainedLoad(points, SLO));
  });
});

const profile = findProfile('a100-80gb-llama-3-70b-tp4');
const traffic = evenTraffic(2);

/** Engines that each sustain `capacity` times the traffic, which a search expected to be `expected` requests/s. */
async function deploy(
  capacity: number,
  load: number,
  {
    expected = 10 * capacity,
    split = false as Candidate['split'],
    replicas = [1, 8] as [number, number],
  } = {},
) {
  const asked: number[] = [];
  const evaluator = evaluatorOf(async (_, [{ loads }], how) => {
    const engines = how!.replicas!;
    asked.push(engines);
    return [loads!.map((at) => pointOfBlocks([capacity * engines, capacity * engines], at))];
  });
  const candidate = { ...vllmDefaults(profile), split };
  const engine = { profile, candidate, load: capacity, sustained: expected };
  const found = await fewestThatHold(evaluator, traffic, engine, load, replicas);
  return { ...found, asked };
}

describe('the engines for a traffic', () => {
  it('takes the fewest engines under which the SLO holds, and costs what all their GPUs do', async () => {
    const { replicas, usdPerHour, good } = await deploy(0.35, 1);
    assert.equal(replicas, 3);
    assert.equal(usdPerHour, 3 * 4 * profile.gpu.usdPerHour);
    assert.ok(good > 0.99 && good < 1);
  });

  it('starts from what the search expects, and goes on until it is enough', async () => {
    assert.deepEqual((await deploy(0.35, 1)).asked, [2, 3]);
    assert.deepEqual((await deploy(0.35, 1, { expected: 8 })).asked, [1, 2, 3]);
    assert.deepEqual((await deploy(0.35, 1, { replicas: [5, 8] })).asked, [5]);
  });

  it('takes pairs in even numbers', async () => {
    const { replicas, asked } = await deploy(0.35, 1, { split: '1:1' });
    assert.deepEqual([replicas, asked], [4, [2, 4]]);
    const groups = (split: Candidate['split']) => wholeGroups({ split }, 7);
    assert.deepEqual([groups('1:1'), groups('2:1'), groups('1:3'), groups(false)], [6, 6, 4, 7]);
  });

  it('says when the most that are allowed are too few', async () => {
    const { replicas, usdPerHour, good, asked } = await deploy(0.35, 4);
    assert.deepEqual([replicas, usdPerHour, asked], [null, null, [8]]);
    assert.ok(good < 0.99);
  });
});
