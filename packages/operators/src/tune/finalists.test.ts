import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findProfile } from '@servegym/profiles';
import { RandomStream } from '@servegym/simulator';
import { type Candidate, vllmDefaults } from '../search/candidate.ts';
import type { SearchedLoad } from '../search/load-question.ts';
import { evenTraffic, fakeEvaluator } from '../search/measured.fixture.ts';
import { measureFinalists } from './finalists.ts';

const profile = findProfile('h100-80gb-llama-3-8b');
const defaults = vllmDefaults(profile);
const BLOCKS = 40;
const split = { search: evenTraffic(BLOCKS), heldOut: evenTraffic(BLOCKS) };

const searched = (changes: Partial<Candidate>, score: number): SearchedLoad => ({
  ...{ profile, candidate: { ...defaults, ...changes }, points: [], load: score, score },
});

/** Capacities of blocks around `mean`, with this relative deviation. */
function around(mean: number, deviation: number, seed: number): number[] {
  const random = new RandomStream(seed, 'capacities');
  return Array.from({ length: BLOCKS }, () => mean * (1 + deviation * random.normal()));
}

/** The finalists of a search that put one candidate first and the defaults second. */
async function finalists(onSearch: readonly number[], onHeldOut: readonly number[], ofDefaults = onHeldOut) {
  const evaluator = fakeEvaluator(({ maxNumSeqs }, traffic) =>
    traffic === split.search ? onSearch : maxNumSeqs === 64 ? onHeldOut : ofDefaults,
  );
  const ranked = [searched({ maxNumSeqs: 64 }, 2), searched({}, 1)];
  return measureFinalists(evaluator, split, ranked, 'goodput');
}

const width = ({ low, high }: { low: number; high: number }) => high - low;

describe('the finalists', () => {
  it('are estimated in requests/s, with intervals that hold the estimate', async () => {
    const [winner, second] = await finalists(Array(BLOCKS).fill(2), Array(BLOCKS).fill(1.5));
    assert.ok(Math.abs(winner!.searched.value - 20) < 0.2, `${winner!.searched.value}`);
    assert.ok(Math.abs(winner!.heldOut.value - 15) < 0.2, `${winner!.heldOut.value}`);
    assert.ok(Math.abs(winner!.searchedLoad - 2) < 0.02);
    // All blocks are alike, and so are all resamples.
    assert.ok(width(winner!.heldOut.interval) < 1e-9);
    assert.deepEqual([winner!.isDefault, second!.isDefault], [false, true]);
  });

  it('are predicted from the search alone: a traffic that is harder than it lies outside', async () => {
    const capacities = around(2, 0.1, 1);
    const [same] = await finalists(capacities, around(2, 0.1, 2));
    const { prediction, searched: found, heldOut } = same!;
    const middle = (prediction.low + prediction.high) / 2;
    assert.ok(Math.abs(middle / found.value - 1) < 0.03, `${middle} around ${found.value}`);
    assert.ok(prediction.low <= heldOut.value && heldOut.value <= prediction.high);

    const [harder] = await finalists(
      capacities,
      around(2, 0.1, 2).map((capacity) => 0.7 * capacity),
    );
    assert.ok(harder!.heldOut.value < harder!.prediction.low, JSON.stringify(harder!.prediction));
    const unmoved = (harder!.prediction.low + harder!.prediction.high) / 2;
    assert.ok(Math.abs(unmoved / harder!.searched.value - 1) < 0.03, `${unmoved}`);
  });

  it('are predicted with the spread of both traffics', async () => {
    const [winner] = await finalists(around(2, 0.1, 1), around(2, 0.2, 2));
    const { prediction, searched: found, heldOut } = winner!;
    const both = Math.hypot(width(found.interval), width(heldOut.interval));
    assert.ok(Math.abs(width(prediction) / both - 1) < 0.1, `${width(prediction)} of ${both}`);
    assert.ok(width(prediction) > 1.1 * width(found.interval));
  });

  it('are compared with the defaults on the same resampled blocks', async () => {
    const onHeldOut = around(2, 0.2, 2);
    const half = onHeldOut.map((capacity) => capacity / 2);
    const [winner, standard] = await finalists(around(2, 0.1, 1), onHeldOut, half);
    const { value, interval } = winner!.overDefaults!;
    assert.ok(Math.abs(value - 2) < 0.05, `${value}`);
    // The blocks are hard and easy for both alike: their ratio hardly varies, though each of them does.
    assert.ok(width(interval) / value < width(winner!.heldOut.interval) / winner!.heldOut.value / 4);
    assert.equal(standard!.overDefaults!.value, 1);
  });

  it('are the best five that differ, the best of each kind, and the defaults', async () => {
    const ranked = [
      searched({ maxNumSeqs: 96, weights: 'FP8', speculationDepth: 2 }, 9),
      searched({ maxNumSeqs: 128, weights: 'FP8', speculationDepth: 2 }, 9),
      ...[8, 7, 6, 5, 4].map((score) => searched({ maxNumSeqs: 64 + score, speculationDepth: 2 }, score)),
      searched({ weights: 'INT4', speculationDepth: 1 }, 3),
      searched({ maxNumSeqs: 32 }, 2.5),
      searched({ split: '1:1' }, 2.2),
      searched({ priority: true }, 2.1),
      searched({}, 2),
    ];
    const evaluator = fakeEvaluator(({ maxNumSeqs }) => Array(BLOCKS).fill(maxNumSeqs / 100));
    const found = await measureFinalists(evaluator, split, ranked, 'goodput');
    const names = found.map(({ candidate }) => ranked.findIndex((each) => each.candidate === candidate));
    assert.equal(names[0], 0, 'the winner of the search comes first');
    assert.deepEqual(
      names.toSorted((a, b) => a - b),
      [0, 2, 3, 4, 5, 7, 8, 9, 10, 11],
    );
    const values = found.slice(1).map(({ heldOut }) => heldOut.value);
    assert.deepEqual(
      values,
      values.toSorted((a, b) => b - a),
    );
  });
});
