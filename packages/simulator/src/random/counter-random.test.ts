import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { counterOf, nextCounter, subKeyBits, subKeyUpperBits } from './counter-random.ts';

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
