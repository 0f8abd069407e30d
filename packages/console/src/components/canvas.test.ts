import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { shareCells, thingsPerCell } from './canvas.ts';

const group = (amount: number) => ({ tone: 'kv', amount }) as const;

describe('cells', () => {
  it('are one a request while there is room', () => {
    assert.equal(thingsPerCell(100, 100), 1);
  });

  it('stand for a round number of requests that makes them fit, and no larger one than needed', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 10_000_000 }),
        fc.integer({ min: 1, max: 2000 }),
        (total, cells) => {
          const unit = thingsPerCell(total, cells);
          assert.match(String(unit), /^[125]0*$/);
          assert.ok(Math.ceil(total / unit) <= cells);
          const smaller = unit / (String(unit).startsWith('5') ? 2.5 : 2);
          if (unit > 1) assert.ok(Math.ceil(total / smaller) > cells);
        },
      ),
    );
  });

  it('are shared by amount without losing one to rounding', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0, max: 80, noNaN: true }), { minLength: 1, maxLength: 6 }),
        (amounts) => {
          const capacity = amounts.reduce((sum, amount) => sum + amount, 0) || 1;
          const shares = shareCells(amounts.map(group), capacity, 200);
          shares.forEach((share, i) => {
            assert.ok(Math.abs(share - (amounts[i] / capacity) * 200) <= 1);
          });
          if (amounts.some((amount) => amount > 0))
            assert.equal(
              shares.reduce((sum, share) => sum + share, 0),
              200,
            );
        },
      ),
    );
  });

  it('never exceed the grid when the parts exceed the capacity', () => {
    assert.deepEqual(shareCells([group(30), group(30)], 40, 100), [75, 25]);
  });
});
