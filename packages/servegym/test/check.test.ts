import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { llmserve, readTableRows, SHIPPED_TABLE_URL } from '@servegym/environments';
import { encodeTable } from '@servegym/environments/table';
import { referencesTable } from '../src/cli/evaluate/check-tasks.ts';
import { runCommand } from './in-process.ts';

const trivialTask = join(import.meta.dirname, 'fixtures/trivial-task.ts');

interface Checked {
  readonly task_id: string | number;
  readonly passed: boolean;
  readonly checks: readonly {
    readonly id: string;
    readonly outcome: string;
    readonly figures: Readonly<Record<string, number | string>>;
    readonly advice?: string;
  }[];
}

const failed = ({ checks }: Checked) =>
  checks.filter(({ outcome }) => outcome === 'fail').map(({ id }) => id);

describe('servegym evaluate --check', () => {
  it("fails loudly on a trivial task, somebody's own", async () => {
    const { code, stdout } = await runCommand(
      'evaluate',
      '--check',
      'quick',
      '--task',
      trivialTask,
      '--json',
    );
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
    const { code, stdout } = await runCommand('evaluate', '--check', 'quick', '--task', trivialTask);
    assert.equal(code, 1);
    assert.match(stdout, /FAIL {2}a tuned configuration beats the default\n +default_return/);
    assert.match(stdout, /^trivial_task FAILS \d+ of \d+ checks: .*tuning_pays/m);
  });

  it('says what it cannot check', async () => {
    for (const [args, message] of [
      [['--task', 'nope'], /one of static_workload.*or a file/],
      [['--task', 'nope', '--env', 'fleet'], /one of diurnal.*or a file/],
      [['--task', './nope.ts'], /there is no such file/],
      [['--task', join(import.meta.dirname, 'scripted-model.ts')], /default export/],
      [['--task', join(import.meta.dirname, '../package.json')], /is no task: .*id/],
    ] as const) {
      const { code, stderr } = await runCommand('evaluate', '--check', ...args);
      assert.equal(code, 2, stderr);
      assert.match(stderr, message);
    }
  });
});

describe('servegym evaluate --check --env inferencegym', () => {
  const folder = mkdtempSync(join(tmpdir(), 'servegym-check-'));
  after(() => rmSync(folder, { recursive: true }));

  it('finds the three tasks sound on the table that comes with the package, and tells their room to adapt', async () => {
    const { code, stdout, stderr } = await runCommand(
      'evaluate',
      '--check',
      'quick',
      '--env',
      'inferencegym',
      '--json',
    );
    assert.equal(stderr, '');
    const checked = JSON.parse(stdout) as (Checked & { best_constant: { batch_size: number } })[];
    assert.deepEqual(
      checked.map((each) => [each.task_id, failed(each)]),
      [
        [1, []],
        [2, []],
        [3, []],
      ],
    );
    assert.equal(code, 0);
    const ruled = checked.map(({ checks }) => checks.find(({ id }) => id === 'rule_loses')!);
    assert.ok(ruled.every(({ outcome, figures }) => outcome === 'note' && Number(figures.share) > 0.9));
    // A rush of the third task wants another batch than the calm.
    const { best_constant_return } = checked[2]!.checks.find(({ id }) => id === 'tuning_pays')!.figures;
    assert.ok(Number(ruled[2]!.figures.rule_return) > Number(best_constant_return) + 5);
    for (const { checks, best_constant } of checked) {
      const ids = checks.map(({ id }) => id);
      for (const id of ['conservation', 'masks_hold', 'room_to_adapt', 'knob_dominance', 'late_stop']) {
        assert.ok(ids.includes(id), `${id} is not among ${ids}`);
      }
      const { serve_less, score, default_score } = checks.find(({ id }) => id === 'less_service')!.figures;
      assert.ok(Number(serve_less) > 50 && Number(score) < Number(default_score));
      for (const { id, figures } of checks) {
        if (id.endsWith('_reacts')) assert.ok(Number(figures.swing) <= 1, `${id}: ${figures.swing}`);
      }
      assert.ok(best_constant.batch_size > 32, JSON.stringify(best_constant));
    }
  });

  it('fails loudly on a table of one’s own whose server is the same whatever is set', async () => {
    const { columns, count } = await readTableRows(readFileSync(SHIPPED_TABLE_URL));
    const rows = Array.from({ length: count }, (_, row) =>
      Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, column[row]])),
    ) as Parameters<typeof encodeTable>[0][number][];
    const first = new Map(rows.map((row) => [row.prompt_len_bucket, row] as const).reverse());
    const same = rows.map((row) => {
      const { ttft_p50_ms, ttft_p99_ms, tpot_ms, tps, gpu_mem_gb, cost_per_1k } = first.get(
        row.prompt_len_bucket,
      )!;
      return { ...row, ttft_p50_ms, ttft_p99_ms, tpot_ms, tps, gpu_mem_gb, cost_per_1k };
    });
    const own = join(folder, 'same.parquet');
    writeFileSync(own, encodeTable(same, {}));
    const { code, stdout, stderr } = await runCommand(
      ...['evaluate', '--check', 'quick', '--task', '1', '--env', 'inferencegym', '--table', own],
    );
    assert.equal(code, 1, stderr);
    assert.match(stdout, /^task 1 FAILS \d+ of \d+ checks: .*queue_reacts.*knobs_act.*tuning_pays/m);
    assert.match(stdout, /> The table has the same figures along that axis/);
    assert.doesNotMatch(stdout, /FAIL {2}(arrived|the same seed|knobs that are masked)/);
  });

  it('says what it cannot check', async () => {
    for (const [args, message] of [
      [['--task', '4', '--env', 'inferencegym'], /one of 1, 2, 3, got 4/],
      [['--table', 'own.parquet'], /--table means nothing to llmserve/],
      [['--env', 'inferencegym', '--table', './nope.parquet'], /there is no such file/],
    ] as const) {
      const { code, stderr } = await runCommand('evaluate', '--check', ...args);
      assert.match(stderr, message);
      assert.equal(code, 2, stderr);
    }
  });
});

describe('servegym evaluate --check recorded', () => {
  it('prints what is recorded, and the docs have it word for word', async () => {
    const { code, stdout } = await runCommand('evaluate', '--check', 'recorded');
    assert.equal(code, 0);
    const references = Object.fromEntries(
      llmserve.tasks.shippedIds.map((id) => [id, llmserve.anchors.reference(id)]),
    );
    assert.equal(stdout.trimEnd(), referencesTable(references));
    const docs = readFileSync(new URL('../../../docs/environments.md', import.meta.url), 'utf8');
    assert.ok(
      docs.includes(stdout.trimEnd()),
      'docs/environments.md: put the output of `servegym evaluate --check recorded` there',
    );
  });

  it('prints JSON with the room, the bound and the returns of each seed', async () => {
    const { stdout } = await runCommand(
      'evaluate',
      '--check',
      'recorded',
      '--task',
      'bursty_workload',
      '--json',
    );
    const { bursty_workload } = JSON.parse(stdout);
    assert.ok(bursty_workload.test.room_to_adapt >= 0.08);
    assert.ok(bursty_workload.test.bound > bursty_workload.test.clairvoyant.mean);
    assert.ok(
      Math.abs(
        bursty_workload.test.certificate_gap -
          (bursty_workload.test.bound - bursty_workload.test.clairvoyant.mean),
      ) < 1e-9,
    );
    assert.equal(typeof bursty_workload.seeds[2_000_000].clairvoyant, 'number');
  });
});
