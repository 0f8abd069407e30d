import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findProfile } from '@servegym/profiles';
import { type Candidate, vllmDefaults } from './candidate.ts';
import { fewestThatHold, wholeGroups } from './fewest-engines.ts';
import { evenTraffic, measurerOf, pointAt } from './measured.fixture.ts';

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
  const measurer = measurerOf(profile, async (_, [{ loads }], how) => {
    const engines = how!.replicas!;
    asked.push(engines);
    return [loads!.map((at) => pointAt([capacity * engines, capacity * engines], at))];
  });
  const engine = { candidate: { ...vllmDefaults(profile), split }, load: capacity, sustained: expected };
  const found = await fewestThatHold(measurer, traffic, engine, { load, replicas });
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
