import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { summarize } from '../statistics/summary.ts';
import { parseServedLoads, type ServedLoad, simulateServedLoad } from './served-load.ts';

const load: ServedLoad = {
  run: 'a',
  model: 'Qwen/Qwen2.5-7B-Instruct',
  gpu: 'H100',
  tp: 1,
  weights: 'FP16',
  max_num_seqs: 128,
  max_num_batched_tokens: 2048,
  kv_blocks: 65_352,
  stages: [
    { duration: 20, rate: 2 },
    { duration: 10, rate: 5 },
  ],
  input_tokens: 750,
  output_tokens: 251,
  ttft_mean_ms: 27,
  ttft_p99_ms: 45,
  e2e_mean_ms: 1772,
  e2e_p99_ms: 1882,
};

describe('a served load', () => {
  it('sends evenly spaced requests, stage after stage, and shares the system prompt', () => {
    const run = simulateServedLoad(load);
    assert.equal(run.completed, 90);
    assert.ok(run.simulatedMs > 29_800 && run.simulatedMs < 32_500, `${run.simulatedMs}`);
    assert.equal(run.counters.cachedTokens, 89 * 7 * 16);
    const e2e = summarize(run.e2eMs).mean;
    assert.ok(e2e > 1300 && e2e < 2200, `${e2e}`);
  });

  it('survives being written and read', () => {
    assert.deepEqual(parseServedLoads(JSON.stringify([load]), 'x.json'), [load]);
  });

  const refused: readonly [what: string, text: string, message: RegExp][] = [
    ['no JSON', '[', /x\.json: expected JSON/],
    ['no list', '{}', /x\.json: expected a list/],
    ['null', '[null]', /`tp` of load 1 to be a number above 0, got nothing/],
    ['a missing field', JSON.stringify([{ ...load, kv_blocks: undefined }]), /`kv_blocks` of load 1/],
    ['a rate of zero', JSON.stringify([{ ...load, stages: [{ duration: 1, rate: 0 }] }]), /`stages`/],
    ['other weights', JSON.stringify([{ ...load, weights: 'FP4' }]), /`weights` of load 1 to be FP16 or FP8/],
  ];
  for (const [what, text, message] of refused) {
    it(`is refused with ${what}`, () => {
      assert.throws(() => parseServedLoads(text, 'x.json'), { code: 'CALIBRATION_FILE', message });
    });
  }
});
