import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { CompletionWheel } from './completion-wheel.ts';
import { RequestTable } from './request-table.ts';

const moves = fc.array(
  fc.oneof(
    // Within a round, in the same iteration as others, and rounds away.
    fc.record({ add: fc.oneof(fc.nat(3), fc.nat(1023), fc.nat(5000), fc.constantFrom(1024, 2048, 3072)) }),
    fc.record({ advance: fc.nat(300) }),
    fc.record({ removeAny: fc.nat() }),
    fc.constant({ removeFirst: true }),
    fc.constant({ addAgain: true }),
  ),
  { maxLength: 200, size: 'max' },
);

test('the wheel tells which sequence completes first, and of equals the one admitted first', () => {
  fc.assert(
    fc.property(moves, fc.nat(1e6), fc.boolean(), (sequence, begin, descending) => {
      const table = new RequestTable(256);
      const wheel = new CompletionWheel(table);
      const members: { slot: number; iteration: number; admitted: number }[] = [];
      let clock = begin;
      let admissions = 0;
      for (const move of sequence) {
        const first = members.toSorted((a, b) => a.iteration - b.iteration || a.admitted - b.admitted)[0];
        assert.equal(wheel.first, first?.slot ?? -1);
        if (first !== undefined) assert.equal(wheel.iteration, first.iteration);

        if ('add' in move) {
          const slot = table.allocate();
          const iteration = clock + move.add;
          // Sequences that are put back come in any order of admission.
          const admitted = descending ? -admissions : admissions;
          admissions++;
          table.admitted[slot] = admitted;
          table.output[slot] = iteration;
          table.generatedOffset[slot] = 0;
          wheel.add(slot);
          members.push({ slot, iteration, admitted });
        } else if ('advance' in move) {
          clock = Math.min(clock + move.advance, first?.iteration ?? Number.POSITIVE_INFINITY);
        } else if ('addAgain' in move) {
          wheel.clear();
          for (const { slot } of members) wheel.add(slot);
        } else if (first !== undefined) {
          const gone = 'removeAny' in move ? members[move.removeAny % members.length] : first;
          wheel.remove(gone.slot, clock);
          members.splice(members.indexOf(gone), 1);
        }
      }
    }),
    { numRuns: 300 },
  );
});
