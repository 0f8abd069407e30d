import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fleet } from '@servegym/environments';
import { temporaryFolder } from '../../../maintenance/test-servers/temporary-folder.ts';
import { runCommand } from './in-process.ts';

const folder = temporaryFolder();

describe('evaluations of fleet', () => {
  const own = join(folder, 'own.json');
  writeFileSync(own, JSON.stringify({ ...fleet.tasks.shipped.agents, id: 'own_agents', windows: 4 }));
  const told = async (...args: string[]) => {
    const { code, stdout, stderr } = await runCommand(...args, '--env', 'fleet', '--json');
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout);
  };

  it('grade a policy on a task of one’s own, as fast as asked for', async () => {
    const { environment, tasks, rate_scale, agent } = await told(
      ...['evaluate', 'hpa:40', '--task', own, '--episodes', '3', '--rate-scale', '0.5'],
    );
    assert.deepEqual([environment, agent, rate_scale], ['fleet', 'hpa:40', 0.5]);
    const { runs, gain, below_default } = tasks.own_agents;
    // The default of the scores is this autoscaler.
    assert.deepEqual(
      runs.map(({ score }: { score: number }) => score),
      [0.2, 0.2, 0.2],
    );
    assert.deepEqual([gain.mean, gain.estimated, below_default], [0, true, 0]);
  });

  it('compare policies under each shift', async () => {
    const { comparisons } = await told(
      ...['evaluate', 'hpa', 'static:1', '--task', own, '--episodes', '2', '--split', 'shifted'],
    );
    assert.deepEqual(
      Object.keys(comparisons[0].tasks),
      fleet.shifts.map((shift) => `own_agents ${shift}`),
    );
  });

  for (const [args, message] of [
    [['hpa', '--shift', 'rate_1.5'], /shift/],
    [['hpa', '--table', 'x'], /--table means nothing to fleet/],
  ] as const) {
    it(`refuse ${args.join(' ')}`, async () => {
      const { code, stderr } = await runCommand('evaluate', '--env', 'fleet', ...args);
      assert.match(stderr, message);
      assert.equal(code, 2);
    });
  }
});
