import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  counterOf,
  nextCounter,
  RandomStream,
  streamKey,
  subKeyBits,
  subKeyUpperBits,
} from './counter-random.ts';

test('draws in a row have the upper bits of draws one by one', () => {
  const integer = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
  fc.assert(
    fc.property(integer, fc.nat({ max: 2 ** 31 - 20 }), (subKey, first) => {
      let counter = counterOf(first);
      for (let b = first; b < first + 10; b++) {
        assert.equal(subKeyUpperBits(subKey, counter) >>> 16, subKeyBits(subKey, b) >>> 16);
        counter = nextCounter(counter);
      }
    }),
  );
});

test('wide seeds with the same key of one stream have other keys and draws in other streams', () => {
  const seeds = new Map<number, number>();
  const pairs: [number, number][] = [];
  // Of 2^18 keys of 32 bits, about eight pairs are equal.
  for (let i = 0; i < 2 ** 18; i++) {
    const seed = 2 ** 52 + i;
    const key = streamKey(seed, 'arrivals');
    const other = seeds.get(key);
    if (other !== undefined) pairs.push([other, seed]);
    seeds.set(key, seed);
  }
  assert.ok(pairs.length > 0);
  for (const [one, other] of pairs) {
    assert.notEqual(streamKey(one, 'lengths'), streamKey(other, 'lengths'));
    assert.notEqual(
      new RandomStream(one, 'arrivals').uniform(),
      new RandomStream(other, 'arrivals').uniform(),
    );
  }
});

test('draws of wide seeds are uniform, and go on from a position', () => {
  const stream = new RandomStream(2 ** 53 - 1, 'arrivals');
  const draws = Array.from({ length: 20_000 }, () => stream.uniform());
  assert.ok(draws.every((draw) => draw >= 0 && draw < 1));
  const mean = draws.reduce((sum, draw) => sum + draw, 0) / draws.length;
  const square = draws.reduce((sum, draw) => sum + draw * draw, 0) / draws.length;
  assert.ok(Math.abs(mean - 1 / 2) < 0.01 && Math.abs(square - 1 / 3) < 0.01);
  assert.equal(new RandomStream(2 ** 53 - 1, 'arrivals', 777).uniform(), draws[777]);
});
