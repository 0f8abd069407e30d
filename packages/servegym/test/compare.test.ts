import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { llmserve } from '@servegym/environments';
import { runCommand } from './in-process.ts';

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
