import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findProfile } from '../data/catalog.ts';
import { parseMeasuredRun, replayRun } from './measured-run.ts';

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
