import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { llmserve, SEED_SPLITS } from '@servegym/environments';
import { runCommand } from './in-process.ts';

async function evaluate(...args: string[]) {
  const { code, stdout, stderr } = await runCommand('evaluate', '--json', ...args);
  assert.equal(stderr, '');
  assert.equal(code, 0);
  return JSON.parse(stdout);
}

describe('servegym evaluate', () => {
  it('scores a policy on every task, with its intervals', async () => {
    const report = await evaluate('heuristic', '--episodes', '2');
    assert.equal(report.agent, 'heuristic');
    assert.equal(report.environment, 'llmserve');
    assert.deepEqual(Object.keys(report.tasks), [...llmserve.tasks.shippedIds]);
    for (const taskId of llmserve.tasks.shippedIds) {
      const { score, regret, runs, slo_compliance, gain, worst10, below_default } = report.tasks[taskId];
      assert.ok(gain.ci95[0] <= gain.mean && gain.mean <= gain.ci95[1] && worst10 <= gain.mean);
      const behind = (
        of: (run: { return: number; anchors: { default: number; clairvoyant: number } }) => number,
      ) => runs.reduce((sum: number, run: never) => sum + of(run), 0);
      const expected =
        behind((run) => run.return - run.anchors.default) /
        behind(({ anchors }) => anchors.clairvoyant - anchors.default);
      assert.ok(Math.abs(gain.mean - expected) < 1e-9);
      assert.equal(below_default, behind((run) => (run.return < run.anchors.default ? 1 : 0)) / runs.length);
      assert.ok(regret.ci95[0] <= regret.iqm && regret.iqm <= regret.ci95[1]);
      assert.ok(score.mean > 0 && score.mean < 1);
      assert.ok(score.ci95[0] <= score.iqm && score.iqm <= score.ci95[1]);
      assert.ok(slo_compliance >= 0 && slo_compliance <= 1);
      const { first } = SEED_SPLITS.test;
      assert.deepEqual(
        runs.map((run: { seed: number }) => run.seed),
        [first, first + 1],
      );
    }
  });

  it('scores the default configuration 0.20 and a gain of 0, which is where the scales start', async () => {
    const report = await evaluate('default', '--task', 'static_workload', '--episodes', '2');
    assert.deepEqual(Object.keys(report.tasks), ['static_workload']);
    const { score, gain, below_default } = report.tasks.static_workload;
    assert.ok(Math.abs(score.mean - 0.2) < 1e-9);
    assert.ok(Math.abs(gain.mean) < 1e-9);
    assert.equal(below_default, 0);
  });

  it('gives the same scores each time', async () => {
    const args = ['random', '--task', 'static_workload', '--episodes', '3', '--split', 'validation'];
    const scores = (report: { tasks: { static_workload: object } }) => ({
      ...report.tasks.static_workload,
      windows_per_s: null,
    });
    const [first, second] = [await evaluate(...args), await evaluate(...args)];
    assert.deepEqual(scores(second), scores(first));
    assert.equal(first.tasks.static_workload.runs[0].seed, SEED_SPLITS.validation.first);
  });

  it('prints a table', async () => {
    const { code, stdout } = await runCommand(
      ...['evaluate', 'default', '--task', 'static_workload', '--episodes', '1'],
    );
    assert.equal(code, 0);
    assert.match(stdout, /^default on llmserve \S+, test split, 1 episode a task$/m);
    assert.match(
      stdout,
      /^static_workload +-?0\.000 +-?0\.000 \.\. -?0\.000 +-?0\.000 +0 % +0\.200 +0\.200 \.\. 0\.200 /m,
    );
  });

  describe('with bad input', () => {
    let folder: string;
    let noPolicy: string;
    before(() => {
      folder = mkdtempSync(join(tmpdir(), 'servegym-evaluate-'));
      noPolicy = join(folder, 'policy.safetensors');
      writeFileSync(noPolicy, 'no policy');
    });
    after(() => rmSync(folder, { recursive: true }));

    for (const [what, args, message] of [
      ['of an unknown policy', () => ['ppo9'], /[Ee]xpected a policy .*one of random, default, .*got "?ppo9/],
      [
        'on an unknown task',
        () => ['default', '--task', 'x'],
        /[Ee]xpected a task of llmserve, all or one of static_workload, .*, got x/,
      ],
      ['of no episodes', () => ['default', '--episodes', '0'], /whole number from 1 to 100000, got `0`/],
      ['of a policy file that is not there', () => ['./none'], /cannot read \.\/none: there is no such file/],
      [
        'of two policies on one episode',
        () => ['default', 'random', '--episodes', '1'],
        /expected --episodes to be from 2 to 10000, got 1/,
      ],
      [
        'of a policy that is told how to ask a model',
        () => ['default', '--llm', 'history=3'],
        /name the policy llm/,
      ],
      ['of a file that is no policy', () => [noPolicy], /policy\.safetensors: Expected a header/],
    ] as const) {
      it(`ends with exit code 2: ${what}`, async () => {
        const { code, stdout, stderr } = await runCommand('evaluate', ...args());
        assert.match(stderr, message);
        assert.equal(code, 2);
        assert.equal(stdout, '');
      });
    }
  });
});

describe('servegym evaluate with several policies', () => {
  it('ranks policies on the same traffic', async () => {
    const { code, stdout, stderr } = await runCommand(
      ...['evaluate', 'random', 'default', '--task', 'static_workload', '--episodes', '4', '--json'],
    );
    assert.equal(stderr, '');
    assert.equal(code, 0);
    const { policies, comparisons } = JSON.parse(stdout);
    assert.deepEqual(
      policies.map(({ policy, rank }: { policy: string; rank: number }) => [policy, rank]),
      [
        ['random', 2],
        ['default', 1],
      ],
    );
    const [{ first, second, overall, tasks }] = comparisons;
    assert.deepEqual([first, second], ['random', 'default']);
    assert.equal(overall.verdict, 'worse');
    assert.equal(overall.probability_of_improvement, 0);
    assert.ok(overall.ci95[0] <= overall.mean && overall.mean <= overall.ci95[1] && overall.ci95[1] < 0);
    assert.deepEqual(tasks.static_workload, overall);
  });

  it('compares under every shift', async () => {
    const { code, stdout, stderr } = await runCommand(
      ...['evaluate', 'default', 'heuristic', '--task', 'static_workload', '--split', 'shifted'],
      ...['--episodes', '2', '--json'],
    );
    assert.equal(stderr, '');
    assert.equal(code, 0);
    const [{ tasks }] = JSON.parse(stdout).comparisons;
    assert.deepEqual(
      Object.keys(tasks),
      llmserve.shifts.map((shift) => `static_workload ${shift}`),
    );
  });

  it('does not rank a policy against itself', async () => {
    const { code, stdout } = await runCommand(
      ...['evaluate', 'default', 'default', '--task', 'static_workload', '--episodes', '2'],
    );
    assert.equal(code, 0);
    assert.match(stdout, /^default +1 +0\.000 .* 0\.200 .*\ndefault +1 +0\.000 .* 0\.200 /m);
    assert.match(stdout, /^default - default +static_workload +0\.000 .* undecided$/m);
  });

  for (const [what, args, message] of [
    ['with an unknown one', ['default', 'nobody'], /[Ee]xpected a policy .*one of random, .*got "?nobody/],
    [
      'on one episode',
      ['default', 'random', '--episodes', '1'],
      /expected --episodes to be from 2 to 10000, got 1/,
    ],
  ] as const) {
    it(`ends with exit code 2: ${what}`, async () => {
      const { code, stdout, stderr } = await runCommand('evaluate', ...args);
      assert.match(stderr, message);
      assert.equal(code, 2);
      assert.equal(stdout, '');
    });
  }
});
