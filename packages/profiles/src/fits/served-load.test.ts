import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findProfile } from '../data/catalog.ts';
import { VLLM_V1 } from '../data/engine-constants.ts';
import {
  parseMeasuredRun,
  parseServedLoads,
  replayRun,
  type ServedLoad,
  serve,
  servedLoadTrace,
  simulateServedLoad,
} from './served-load.ts';

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
};

describe('a served load', () => {
  it('has exponential gaps, stage after stage', () => {
    const { arrivalMs } = servedLoadTrace(
      {
        ...load,
        stages: [
          { duration: 2000, rate: 2 },
          { duration: 1000, rate: 5 },
        ],
      },
      1,
    );
    assert.equal(arrivalMs.length, 9000);
    for (const [first, last, meanMs] of [
      [0, 4000, 500],
      [4000, 9000, 200],
    ]) {
      const gaps = Array.from(
        { length: last - first - 1 },
        (_, i) => arrivalMs[first + i + 1] - arrivalMs[first + i],
      );
      const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
      const deviation = Math.sqrt(gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / gaps.length);
      assert.ok(Math.abs(mean / meanMs - 1) < 0.05, `mean ${mean}`);
      assert.ok(Math.abs(deviation / mean - 1) < 0.06, `deviation ${deviation}`);
    }
  });

  it('repeats its prompts after 100 requests, all with the same system prompt', () => {
    const trace = servedLoadTrace({ ...load, stages: [{ duration: 100, rate: 4 }] }, 1);
    const run = serve(load, trace, VLLM_V1);
    assert.equal(run.completed, 400);
    // Requests that overlap with the first of their prompt may find less.
    const whole = 300 * Math.floor(749 / 16) * 16 + 99 * 6 * 16;
    assert.ok(
      Math.abs(run.counters.cachedTokens / whole - 1) < 0.02,
      `${run.counters.cachedTokens} of ${whole}`,
    );
  });

  it('has about the latencies of the whole when a fifth is simulated', () => {
    const long = { ...load, stages: [{ duration: 600, rate: 6 }] };
    const [whole, fifth] = [1, 0.2].map((share) => simulateServedLoad(long, VLLM_V1, share));
    assert.ok(Math.abs(fifth.e2eMean / whole.e2eMean - 1) < 0.02, `${fifth.e2eMean} ${whole.e2eMean}`);
    assert.ok(Math.abs(fifth.ttftMean / whole.ttftMean - 1) < 0.03, `${fifth.ttftMean} ${whole.ttftMean}`);
    assert.ok(Math.abs(fifth.itlMean / whole.itlMean - 1) < 0.02, `${fifth.itlMean} ${whole.itlMean}`);
  });

  it('survives being written and read', () => {
    assert.deepEqual(parseServedLoads(JSON.stringify([load]), 'x.json'), [load]);
  });

  const refused: readonly [what: string, text: string, message: RegExp][] = [
    ['no JSON', '[', /x\.json: expected JSON/],
    ['no list', '{}', /x\.json: expected a list/],
    ['null', '[null]', /`tp` of load 1 to be a number above 0, got nothing/],
    ['a missing field', JSON.stringify([{ ...load, tp: undefined }]), /`tp` of load 1/],
    ['an empty pool', JSON.stringify([{ ...load, kv_blocks: 0 }]), /`kv_blocks` of load 1/],
    ['a rate of zero', JSON.stringify([{ ...load, stages: [{ duration: 1, rate: 0 }] }]), /`stages`/],
    ['other weights', JSON.stringify([{ ...load, weights: 'FP4' }]), /`weights` of load 1 to be FP16 or FP8/],
  ];
  for (const [what, text, message] of refused) {
    it(`is refused with ${what}`, () => {
      assert.throws(() => parseServedLoads(text, 'x.json'), { code: 'CALIBRATION_FILE', message });
    });
  }
});

const request = {
  input_toks: 100,
  output_toks: 11,
  arrival_time: 1_787_267_980,
  queued_ts: 50,
  scheduled_ts: 50,
  first_token_ts: 50.25,
  last_token_ts: 50.75,
};
const later = {
  ...request,
  arrival_time: 1_787_267_981,
  queued_ts: 51,
  first_token_ts: 51.5,
  last_token_ts: 53,
  output_toks: 1,
};
const requests = `${JSON.stringify(request)}\n${JSON.stringify(later)}\n`;
const meta = JSON.stringify({
  kv_cache: { num_gpu_blocks: 2588 },
  engine_kwargs: { max_num_seqs: 256, max_num_batched_tokens: 2048 },
});

describe('a measured run', () => {
  it('is read with its latencies on the clock of the engine', () => {
    const run = parseMeasuredRun(requests, meta, 'run');
    assert.deepEqual([...run.trace.arrivalMs], [0, 1000]);
    assert.equal(run.ttftMs.mean, 375);
    assert.equal(run.tpotMs.mean, 50);
    assert.equal(run.e2eMs.mean, 1375);
    assert.equal(run.makespanMs, 3000);
    assert.equal(run.kvBlocks, 2588);
  });

  it('is replayed with the pool and the limits of the real engine', () => {
    const run = parseMeasuredRun(requests, meta, 'run');
    const replay = replayRun(findProfile('rtx4090-24gb-llama-3-8b'), run);
    assert.equal(replay.completed, 2);
    assert.equal(replay.kvBlocks, 2588);
    assert.ok(replay.ttftMs[0] < 50, 'time before the engine is not counted');
  });

  it('is refused without the times of a request, or the size of the pool', () => {
    const { queued_ts: _, ...rest } = later;
    assert.throws(
      () => parseMeasuredRun(`${JSON.stringify(request)}\n${JSON.stringify(rest)}`, meta, 'run'),
      {
        code: 'CALIBRATION_FILE',
        message: /run\/requests\.jsonl:2: expected `queued_ts`/,
      },
    );
    assert.throws(() => parseMeasuredRun(requests, '{}', 'run'), {
      code: 'CALIBRATION_FILE',
      message: /run\/meta\.json: expected `kv_cache\.num_gpu_blocks`/,
    });
  });
});
