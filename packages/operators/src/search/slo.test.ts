import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseSlo, sloTermName, sloTermText } from './slo.ts';

describe('an SLO', () => {
  it('is read with its percentiles, the mean, ms and s', () => {
    const slo = parseSlo('ttft_p99=1.5s, TPOT_p99.9=40ms,e2e_mean=20s');
    assert.deepEqual(slo, [
      { metric: 'ttft', quantile: 0.99, limitMs: 1500 },
      { metric: 'tpot', quantile: 0.9990000000000001, limitMs: 40 },
      { metric: 'e2e', quantile: null, limitMs: 20_000 },
    ]);
    assert.deepEqual(slo.map(sloTermName), ['ttft_p99', 'tpot_p99.9', 'e2e_mean']);
    assert.equal(sloTermText(slo[0]), 'TTFT p99 at most 1500 ms');
  });

  it('may bound a priority class beside all requests', () => {
    const slo = parseSlo('class0_ttft_p99=300ms,ttft_p99=5s');
    assert.deepEqual(slo[0], { metric: 'ttft', quantile: 0.99, limitMs: 300, priorityClass: 0 });
    assert.deepEqual(slo.map(sloTermName), ['class0_ttft_p99', 'ttft_p99']);
    assert.equal(sloTermText(slo[0]), 'TTFT p99 of class 0 at most 300 ms');
    assert.throws(() => parseSlo('class0_ttft_p99=1s,class0_ttft_p99=2s'), /twice/);
  });

  it('is refused where it is unclear', () => {
    for (const text of [
      '',
      'ttft',
      'ttft_p99',
      'ttft_p99=300',
      'itl_p99=3ms',
      'ttft_p0=1s',
      'ttft_p99=0ms',
      'ttft_p99=-1s',
      'class8_ttft_p99=1s',
    ]) {
      assert.throws(() => parseSlo(text), { name: 'TuningError', message: /--slo/ }, text);
    }
    assert.throws(() => parseSlo('ttft_p99=1s,ttft_p99=2s'), /twice/);
  });
});
