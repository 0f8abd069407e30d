import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
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
const shown = (change: Partial<PpoUpdate>, wallSeconds: number) =>
  progressLine(
    run,
    {
      ...{ kind: 'update', update: { ...update, ...change }, share: 0 },
      metrics: { steps: 0, mean_return: null },
    },
    wallSeconds,
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
    const json = timedLine({ steps: 30_000, mean_return: null, approx_kl: 0.01234 }, 10);
    assert.deepEqual(JSON.parse(JSON.stringify(json)), json);
    assert.equal(json.steps_per_s, 3000);
    assert.equal(json.mean_return, null);
    assert.equal(json.approx_kl, 0.01234);
  });
});

describe('TrainingLog', () => {
  const folder = temporaryFolder();

  function log(updates: readonly number[]): void {
    const part = new TrainingLog(folder);
    for (const steps of updates) part.append({ steps, mean_return: -steps } as never);
    part.finish(run, { steps: 0, finalReturn: null, policy: new Uint8Array() });
  }
  const stepsKept = () =>
    readFileSync(join(folder, 'metrics.jsonl'), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).steps);

  it('forgets another run that was written to the folder', () => {
    log([100, 200, 300]);
    log([50, 150]);
    assert.deepEqual(stepsKept(), [50, 150]);
  });
});
