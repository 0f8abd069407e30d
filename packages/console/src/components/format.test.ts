import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { amount, clock, dollars, latencyText, latencyTick, percent, signed, words } from './format.ts';

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
