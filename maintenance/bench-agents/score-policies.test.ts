import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { AGENTS, evaluatePolicy, gainFigures } from '@servegym/agents';
import { SEED_SPLITS } from '@servegym/environments';
import { type JobEngine, LocalJobs } from '@servegym/jobs';
import { JOB_KINDS } from '../../packages/servegym/src/cli/jobs/open-jobs.ts';
import { BenchmarkCache } from './benchmark-cache.ts';
import { scorePolicies } from './score-policies.ts';

const taskId = 'adversarial_multitenant';
const { first } = SEED_SPLITS.test;

describe('scorePolicies', () => {
  let folder: string;
  let jobs: JobEngine;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'servegym-scores-'));
    jobs = new LocalJobs({ kinds: JOB_KINDS, threads: 1 });
  });
  after(async () => {
    await jobs.close();
    rmSync(folder, { recursive: true });
  });
  const context = () => ({ jobs, cache: new BenchmarkCache(folder), say() {} });
  const idle: JobEngine = {
    width: 1,
    share: async () => 'nothing',
    async run(work) {
      assert.deepEqual(work, []);
      return [];
    },
    async close() {},
  };

  it('gives the scores of the grader, and plays nothing twice', async () => {
    for (const shift of [null, 'rate_1.5'] as const) {
      const scenario = shift === null ? {} : { shift };
      const traffic = { taskId, shift, seeds: [first, first + 1] } as const;
      const { tasks } = await evaluatePolicy(
        AGENTS.llmserve.playable({ scenario }),
        AGENTS.llmserve.createPolicy('heuristic'),
        { taskIds: [taskId], seeds: traffic.seeds },
      );
      const graded = tasks[0].episodes.map(({ score }) => score);
      for (const each of [context(), { ...context(), jobs: idle }]) {
        const [episodes] = await scorePolicies(['heuristic'], traffic, each);
        assert.deepEqual(
          episodes!.map(({ score }) => score),
          graded,
        );
        assert.deepEqual(gainFigures([episodes!]), tasks[0].gains);
      }
    }
  });

  it('takes what planners earned from the record, where they are recorded', async () => {
    const traffic = { taskId, shift: null, seeds: [first, first + 1] } as const;
    await scorePolicies(['default'], traffic, context());
    const [planned, foreseen] = await scorePolicies(['mpc', 'oracle'], traffic, {
      ...context(),
      jobs: idle,
    });
    assert.ok(foreseen!.every(({ score }) => Math.abs(score - 0.95) < 1e-9));
    assert.ok(planned!.every(({ score }) => score > 0.3 && score < 0.95));
  });
});

describe('BenchmarkCache', () => {
  it('forgets findings that depend on something else now', () => {
    const folder = mkdtempSync(join(tmpdir(), 'servegym-cache-'));
    try {
      const find = (dependsOn: string) =>
        new BenchmarkCache(folder).findings<number>('some/thing', dependsOn);
      find('a').add([7, 8], [0.7, 0.8]);
      assert.deepEqual(find('a').of([8, 7]), [0.8, 0.7]);
      assert.ok(!find('a').has(9));
      assert.ok(!find('b').has(7));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
