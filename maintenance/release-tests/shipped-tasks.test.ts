import assert from 'node:assert/strict';
import { it } from 'node:test';
import { llmserve } from '@servegym/environments';
import { runCommand } from '../../packages/servegym/test/in-process.ts';

it('the tasks of llmserve that are shipped are sound, and games', async () => {
  const { code, stdout, stderr } = await runCommand('evaluate', '--check', 'quick', '--json');
  assert.equal(stderr, '');
  const checked = JSON.parse(stdout) as {
    task_id: string;
    checks: { id: string; outcome: string; figures: object }[];
  }[];
  assert.deepEqual(
    checked.map(({ task_id, checks }) => [task_id, checks.filter(({ outcome }) => outcome === 'fail')]),
    llmserve.tasks.shippedIds.map((id) => [id, []]),
  );
  assert.equal(code, 0);
  for (const { checks } of checked) {
    const figures = (id: string) =>
      checks.find((check) => check.id === id)!.figures as Record<string, number>;
    for (const knob of ['batch_cap', 'kv_budget_fraction', 'speculation_depth', 'quantization_tier']) {
      const { worth, default_worth } = figures(`most_${knob}`);
      assert.ok(knob === 'batch_cap' ? worth <= 1.001 * default_worth : worth < default_worth, knob);
    }
    const int4 = figures('int4_tuned');
    assert.ok(int4.score < int4.best_constant_score);
    assert.match(String(int4.action), /"quantization_tier":"INT4"/);
  }
});
