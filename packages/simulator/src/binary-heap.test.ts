import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { BinaryHeap } from './binary-heap.ts';

const comesFirst = (a: number, b: number) => a < b;

it('a heap gives the least of what it holds', () => {
  const step = fc.oneof(fc.integer({ min: 0, max: 20 }), fc.constant('take' as const));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const heap = new BinaryHeap(comesFirst);
      const held: number[] = [];
      for (const each of steps) {
        if (each !== 'take') {
          heap.push(each);
          held.push(each);
          held.sort((a, b) => a - b);
        } else if (held.length > 0) {
          assert.equal(heap.first, held[0]);
          assert.equal(heap.take(), held.shift());
        }
        assert.equal(heap.size, held.length);
      }
    }),
  );
});
