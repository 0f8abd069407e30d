import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { shareCells, thingsPerCell } from './canvas.ts';
import { amount, clock, dollars, latencyText, latencyTick, percent, signed, words } from './format.ts';

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

const plain = (text: string) => text.replaceAll('\u202f', ' ');

describe('figures', () => {
  it('keep about three digits', () => {
    const figures = [0, 0.000123, 0.084, 9, 38.24, 1240.4];
    assert.deepEqual(figures.map(amount), ['0', '0.00012', '0.08', '9.00', '38.2', '1,240']);
  });
  it('give latencies in the unit that people say', () => {
    assert.deepEqual([8.13, 412, 3200, 48_000, 1_200_000].map(latencyText).map(plain), [
      '8.1 ms',
      '412 ms',
      '3.2 s',
      '48 s',
      '1,200 s',
    ]);
    assert.deepEqual([10, 100, 1000, 100_000].map(latencyTick).map(plain), [
      '10 ms',
      '100 ms',
      '1 s',
      '100 s',
    ]);
  });
  it('give shares in percent, prices in dollars and time as a clock', () => {
    assert.equal(plain(percent(0.876)), '88 %');
    assert.deepEqual([0, 0.00213, 0.5, -20].map(dollars), ['$0', '$0.0021', '$0.50', '−$20.00']);
    assert.deepEqual([5, 245, 3750].map(clock), ['0:05', '4:05', '1:02:30']);
  });
  it('carry their sign, and none when they round to zero', () => {
    assert.deepEqual([0.314, -0.2, -0.001].map(signed), ['+0.31', '−0.20', '0.00']);
  });
});

describe('machine names', () => {
  it('become words', () => {
    assert.deepEqual(['best_effort', 'slo', 'p99_ttft_ms', 'flash-crowd'].map(words), [
      'Best effort',
      'SLO',
      'P99 TTFT ms',
      'Flash crowd',
    ]);
  });
});
