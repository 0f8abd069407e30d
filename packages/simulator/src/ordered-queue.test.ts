import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { OrderedQueue } from './ordered-queue.ts';

const comesFirst = (a: number, b: number) => a < b;

it('a queue gives the least of what it holds, also after it was copied by its list', () => {
  const step = fc.oneof(
    fc.integer({ min: 0, max: 20 }),
    fc.constant('take' as const),
    fc.constant('copy' as const),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let queue = new OrderedQueue(comesFirst);
      const held: number[] = [];
      for (const each of steps) {
        if (each === 'copy') queue = new OrderedQueue(comesFirst, queue.list());
        else if (each !== 'take') {
          queue.add(each);
          held.push(each);
          held.sort((a, b) => a - b);
        } else if (held.length > 0) {
          assert.equal(queue.first, held[0]);
          assert.equal(queue.take(), held.shift());
        }
        assert.equal(queue.size, held.length);
      }
    }),
  );
});
