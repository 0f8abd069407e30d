import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { LocalJobs } from '@servegym/jobs';
import { JOB_KINDS } from '../jobs/job-kinds.ts';
import { assessFidelity } from './assess-fidelity.ts';
import type { Fidelity } from './fidelity.ts';
import { fidelityReport } from './fidelity-report.ts';

const data = join(import.meta.dirname, '../../../../../../shared/data');

describe('the simulator, beside measurements of real servers', () => {
  let fidelity: Fidelity;
  before(async () => {
    assert.ok(existsSync(data), `the measurements are missing: expected them at ${data}`);
    const jobs = new LocalJobs({ kinds: JOB_KINDS, threads: 2 });
    try {
      fidelity = await assessFidelity(jobs, (path) => readFile(join(data, path), 'utf8'));
    } finally {
      await jobs.close();
    }
  });

  it('predicts static batches that its fits have not seen within 2.5 %', () => {
    const { staticBatches } = fidelity;
    const rows = staticBatches.reduce((sum, each) => sum + each.rows, 0);
    const mean = staticBatches.reduce((sum, each) => sum + each.rows * each.leftOutMean, 0) / rows;
    assert.ok(mean < 2.5, `${mean} %`);
    for (const { profile, leftOutWorst } of staticBatches)
      assert.ok(leftOutWorst < 8, `${profile}: ${leftOutWorst} %`);
  });

  it('predicts what a batch costs that overflows the KV memory', () => {
    const errors = fidelity.staticBatches.flatMap(({ overflowing }) => overflowing);
    assert.equal(errors.length, 2);
    for (const error of errors) assert.ok(Math.abs(error) < 4, `${error} %`);
  });

  it('predicts FP8 and INT8 weights that its fits have not seen within 4 %', () => {
    const { quantized } = fidelity;
    assert.deepEqual(quantized.map(({ weights }) => weights).sort(), ['FP8', 'INT8']);
    const rows = quantized.reduce((sum, each) => sum + each.rows, 0);
    const mean = quantized.reduce((sum, each) => sum + each.rows * each.leftOutMean, 0) / rows;
    assert.ok(mean < 4, `${mean} %`);
  });

  it('replays a run under overload from kernel times alone', () => {
    const { replay } = fidelity;
    assert.equal(replay.requests, 300);
    assert.ok(Math.abs(replay.tpotMean) < 2, `TPOT ${replay.tpotMean} %`);
    assert.ok(Math.abs(replay.ttftMean) < 4, `TTFT ${replay.ttftMean} %`);
    assert.ok(Math.abs(replay.e2eP99) < 4, `end to end p99 ${replay.e2eP99} %`);
    assert.ok(replay.preemptions > 100);
  });

  it('serves the loads of twelve real servers with one set of constants', () => {
    const { servedLoads } = fidelity;
    assert.equal(servedLoads.length, 12);
    const middle = (errors: readonly number[]) => errors.map(Math.abs).sort((a, b) => a - b)[6]!;
    const seen = { e2eMean: 5, ttftMean: 12, ttftP99: 20 } as const;
    const leftOut = { e2eMean: 7, ttftMean: 12, ttftP99: 22 } as const;
    for (const what of ['e2eMean', 'ttftMean', 'ttftP99'] as const) {
      assert.ok(middle(servedLoads.map((load) => load[what])) < seen[what], what);
      assert.ok(middle(servedLoads.map((load) => load.leftOut[what])) < leftOut[what], `${what}, left out`);
    }
  });

  it('speeds up by speculation as measured, the less the larger the batch', () => {
    const { speculation } = fidelity;
    assert.ok(speculation.filter(({ measured }) => measured !== null).length >= 2);
    for (const { batch, simulated, measured } of speculation) {
      if (measured !== null)
        assert.ok(Math.abs(simulated / measured - 1) < 0.08, `batch ${batch}: ${simulated}`);
    }
    for (const [i, { simulated }] of speculation.entries()) {
      if (i > 0) assert.ok(simulated < speculation[i - 1]!.simulated);
    }
  });

  it('is told in docs/fidelity.md as it is', async () => {
    const page = await readFile(join(import.meta.dirname, '../../../../../docs/fidelity.md'), 'utf8');
    assert.equal(page, fidelityReport(fidelity));
  });
});
