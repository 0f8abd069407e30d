import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { gunzipSync } from 'node:zlib';
import {
  type RecordedLoad,
  scheduleAcrossSnapshot,
  scheduleOnEngine,
  scheduleOnReference,
} from './recorded-load.ts';

interface Recording {
  readonly vllm: string;
  readonly kind: string;
  readonly loads: RecordedLoad[];
}

/** Loads of every kind with the schedules of vLLM, made by `benchmarks/vllm/record_schedules.py`. */
function readRecordings(): Recording[] {
  const recordings: Recording[] = [];
  const text = gunzipSync(readFileSync(new URL('./vllm-schedules.jsonl.gz', import.meta.url))).toString();
  for (const line of text.trim().split('\n')) {
    const parsed = JSON.parse(line);
    if ('vllm' in parsed) recordings.push({ ...parsed, loads: [] });
    else recordings[recordings.length - 1].loads.push(parsed);
  }
  return recordings;
}

describe('the schedules of vLLM', () => {
  const recordings = readRecordings();

  it('data: are 400 or more, of one version', () => {
    const loads = recordings.reduce((sum, recording) => sum + recording.loads.length, 0);
    assert.ok(loads >= 400, `${loads}`);
    assert.deepEqual([...new Set(recordings.map(({ vllm }) => vllm))], ['0.32.0']);
  });

  for (const { kind, loads } of recordings) {
    it(`are those of the engine, and of the reference engine without windows (${kind})`, () => {
      let preemptions = 0;
      for (const load of loads) {
        const { tokens_ms, totals } = load;
        // The reference engine has one group of layers with full attention.
        if (load.groups === undefined) assert.deepEqual(scheduleOnReference(load), { tokens_ms, totals });
        assert.deepEqual(scheduleOnEngine(load), { tokens_ms, totals });
        assert.deepEqual(scheduleOnEngine(load, 'asked for'), { tokens_ms, totals });
        preemptions += totals[1];
      }
      // Loads that nothing interrupts would prove little.
      assert.ok(preemptions > loads.length, `${preemptions} preemptions`);
    });
  }

  it('go on in another engine from a snapshot, with blocks in groups of layers', () => {
    const loads = recordings
      .flatMap((recording) => recording.loads)
      .filter(({ groups }) => groups !== undefined);
    for (const load of loads.filter(({ requests }) => requests.every(([, , , , abortMs]) => abortMs < 0))) {
      assert.deepEqual(scheduleAcrossSnapshot(load), load.tokens_ms);
    }
  });
});
