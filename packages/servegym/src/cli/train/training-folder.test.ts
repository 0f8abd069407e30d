import assert from 'node:assert/strict';
import { readdirSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { temporaryFolder } from '../../../../../maintenance/test-servers/temporary-folder.ts';
import { TrainingLog } from './training-folder.ts';

describe('TrainingLog', () => {
  const folder = temporaryFolder();

  let parts = 0;
  function log(keepUntil: number, updates: readonly number[]): void {
    const part = new TrainingLog(folder, keepUntil);
    for (const steps of updates) part.append({ steps, mean_return: -steps } as never);
    const { events } = part.finish('a run');
    // As if time had passed: parts of a run are read in the order of their names.
    renameSync(events, join(folder, `events.out.tfevents.${1_000_000 + parts++}.servegym`));
  }

  it('tells TensorBoard each update once, however often the run stopped', () => {
    log(0, [100, 200, 300]);
    // The last checkpoint was written before the last update.
    log(200, [300, 400]);
    log(400, [500]);
    assert.deepEqual(stepsShown(folder), [100, 200, 300, 400, 500]);
    const lines = readFileSync(join(folder, 'metrics.jsonl'), 'utf8').trimEnd().split('\n');
    assert.deepEqual(
      lines.map((line) => JSON.parse(line).steps),
      [100, 200, 300, 400, 500],
    );
  });

  it('has TensorBoard forget another run that was written to the folder', () => {
    log(0, [50, 150]);
    assert.deepEqual(stepsShown(folder), [50, 150]);
  });
});

/** Steps of the scalars in the event files of a folder, read as TensorBoard reads them. */
function stepsShown(folder: string): number[] {
  const SUMMARY = 5 * 8 + 2;
  const SESSION_LOG = 7 * 8 + 2;
  let steps: number[] = [];
  const files = readdirSync(folder).filter((name) => name.includes('tfevents'));
  for (const file of files.sort()) {
    const bytes = readFileSync(join(folder, file));
    for (let at = 0; at < bytes.length; ) {
      const length = Number(bytes.readBigUInt64LE(at));
      // Behind the wall time.
      const event = bytes.subarray(at + 12 + 9, at + 12 + length);
      at += length + 16;
      if (event[0] !== 2 * 8) continue;
      let step = 0;
      let next = 1;
      for (let shift = 0; ; shift += 7) {
        const byte = event[next++];
        step += (byte & 0x7f) << shift;
        if (byte < 0x80) break;
      }
      if (event[next] === SUMMARY) steps.push(step);
      else if (event[next] === SESSION_LOG) steps = steps.filter((shown) => shown < step);
    }
  }
  return steps;
}
