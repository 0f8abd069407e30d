import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { llmserve } from '@servegym/environments';
import { runServegym } from '../../../maintenance/test-servers/servegym.ts';

describe('servegym compare', () => {
  it('ranks policies on the same traffic', async () => {
    const { code, stdout, stderr } = await runServegym(
      ...['compare', 'random', 'default', '--task', 'static_workload', '--episodes', '4', '--json'],
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
    const { code, stdout, stderr } = await runServegym(
      ...['compare', 'default', 'heuristic', '--task', 'static_workload', '--split', 'shifted'],
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
    const { code, stdout } = await runServegym(
      ...['compare', 'default', 'default', '--task', 'static_workload', '--episodes', '2'],
    );
    assert.equal(code, 0);
    assert.match(stdout, /^default +1 +0\.000 .* 0\.200 .*\ndefault +1 +0\.000 .* 0\.200 /m);
    assert.match(stdout, /^default - default +static_workload +0\.000 .* undecided$/m);
  });

  for (const [what, args, message] of [
    ['of one policy', ['default'], /expected two policies or more to compare, got 1/],
    ['with an unknown one', ['default', 'nobody'], /expected a policy named one of random, .*, got nobody/],
    [
      'of another environment through a queue',
      ['random', 'heuristic', '--env', 'inferencegym', '--queue', 'redis://127.0.0.1:1'],
      /--queue means nothing to inferencegym/,
    ],
    [
      'on one episode',
      ['default', 'random', '--episodes', '1'],
      /Expected a whole number from 2 to 10000, got `1`/,
    ],
  ] as const) {
    it(`ends with exit code 2: ${what}`, async () => {
      const { code, stdout, stderr } = await runServegym('compare', ...args);
      assert.match(stderr, message);
      assert.equal(code, 2);
      assert.equal(stdout, '');
    });
  }
});
