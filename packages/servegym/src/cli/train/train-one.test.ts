import assert from 'node:assert/strict';
import { readdirSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { PpoUpdate, TrainingRun } from '@servegym/agents';
import { temporaryFolder } from '../../../../../maintenance/test-servers/temporary-folder.ts';
import { progressLine, TrainingLog, timedLine } from './train-one.ts';

const update: PpoUpdate = {
  steps: 30_000,
  episodes: 0,
  meanReturn: null,
  policyLoss: -0.01,
  valueLoss: 0.5,
  entropy: 2.345,
  approxKl: 0.01234,
  clipFraction: 0.1,
  explainedVariance: 0.876,
  learningRate: 0.001,
  entropyCoef: 0.002,
  keepBonus: 3,
  minibatches: 64,
  firstRatioError: 0,
};
const run: TrainingRun = {
  environment: 'llmserve',
  task: 'a_task',
  algorithm: 'ppo',
  steps: 120_000,
  seed: 0,
};
const clock = { firstStep: 0, wallSeconds: 10 };
const shown = (change: Partial<PpoUpdate>, wallSeconds: number) =>
  progressLine(
    run,
    {
      ...{ kind: 'update', update: { ...update, ...change }, share: 0 },
      metrics: { steps: 0, mean_return: null },
      checkpoint: () => new Uint8Array(),
    },
    { firstStep: 0, wallSeconds },
  );

describe('progressLine', () => {
  it('says how far, how fast, how well and how long still', () => {
    assert.equal(
      shown({}, 10),
      ' 25 %  30,000 steps  3,000/s  return -  KL 0.0123  EV 0.88  entropy 2.35  30 s left',
    );
    const done = shown({ steps: 122_880, meanReturn: 97.26 }, 40.96);
    assert.match(done, /^100 % {2}122,880 steps {2}3,000\/s {2}return 97\.3 .* 0 s left$/);
  });
});

describe('timedLine', () => {
  it('is one flat object that JSON can carry', () => {
    const json = timedLine({ steps: 30_000, mean_return: null, approx_kl: 0.01234 }, clock);
    assert.deepEqual(JSON.parse(JSON.stringify(json)), json);
    assert.equal(json.steps_per_s, 3000);
    assert.equal(json.mean_return, null);
    assert.equal(json.approx_kl, 0.01234);
  });
});

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
