import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { TASK_IDS } from '@servegym/environments';
import { runServegym } from './serve-process.ts';

const trivialTask = join(import.meta.dirname, 'fixtures/trivial-task.ts');

interface Checked {
  readonly task_id: string;
  readonly passed: boolean;
  readonly checks: readonly { readonly id: string; readonly outcome: string; readonly advice?: string }[];
}

const failed = ({ checks }: Checked) =>
  checks.filter(({ outcome }) => outcome === 'fail').map(({ id }) => id);

describe('servegym check', () => {
  it('finds our own tasks sound, and games', async () => {
    const { code, stdout, stderr } = await runServegym('check', '--quick', '--json');
    assert.equal(stderr, '');
    const checked = JSON.parse(stdout) as Checked[];
    assert.deepEqual(
      checked.map((each) => [each.task_id, failed(each)]),
      TASK_IDS.map((id) => [id, []]),
    );
    assert.equal(code, 0);
  });

  it("fails loudly on a trivial task, somebody's own", async () => {
    const { code, stdout } = await runServegym('check', trivialTask, '--quick', '--json');
    assert.equal(code, 1);
    const [checked] = JSON.parse(stdout) as [Checked];
    assert.equal(checked.passed, false);
    const why = failed(checked);
    for (const id of ['queue_reacts', 'starvation_shows', 'tuning_pays', 'room_to_adapt', 'knob_dominance']) {
      assert.ok(why.includes(id), `${id} is not among ${why}`);
    }
    for (const id of ['conservation', 'drained', 'littles_law', 'repeatability', 'rate_latency']) {
      assert.ok(!why.includes(id), `${id} fails`);
    }
    for (const { id, outcome, advice } of checked.checks) {
      const isMisuse = ['queue_reacts', 'tuning_pays', 'room_to_adapt'].includes(id);
      if (outcome === 'fail' && isMisuse) assert.ok((advice ?? '').length > 20, id);
    }
  });

  it('prints the figures, and says what failed', async () => {
    const { code, stdout } = await runServegym('check', '--task', trivialTask, '--quick');
    assert.equal(code, 1);
    assert.match(stdout, /FAIL {2}a tuned configuration beats the default\n +default_return/);
    assert.match(stdout, /^trivial_task FAILS \d+ of \d+ checks: .*tuning_pays/m);
  });

  it('says what it cannot check', async () => {
    for (const [args, message] of [
      [['nope'], /one of static_workload.*or a file/],
      [['./nope.ts'], /there is no such file/],
      [[join(import.meta.dirname, 'serve-process.ts')], /default export/],
      [[join(import.meta.dirname, '../package.json')], /is no task: .*id/],
    ] as const) {
      const { code, stderr } = await runServegym('check', ...args);
      assert.equal(code, 2, stderr);
      assert.match(stderr, message);
    }
  });
});
