import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fleet } from '@servegym/environments';
import { temporaryFolder } from '../../../maintenance/test-servers/temporary-folder.ts';
import { runCommand } from './in-process.ts';

const FLEET = ['evaluate', '--env', 'fleet', '--seed', '0'];

describe('servegym evaluate --env fleet --seed', () => {
  it('plays policies on the requests of a task, and tells what they earn and cost', async () => {
    const args = [...FLEET, 'static:2', 'hpa', '--task', 'flash_crowds', '--max-steps', '24', '--json'];
    const { code, stdout, stderr } = await runCommand(...args);
    assert.equal(code, 0, stderr);
    const { hours, runs } = JSON.parse(stdout);
    assert.equal(hours, 0.2);
    assert.deepEqual(
      runs.map(({ policy }: { policy: string }) => policy),
      ['static:2', 'hpa'],
    );
    for (const run of runs) {
      assert.ok(Math.abs(run.usd - (run.revenue_usd - run.gpu_usd)) < 1e-9);
      assert.ok(run.completed + run.refused <= run.requests);
      assert.ok(run.slo_attainment > 0 && run.slo_attainment <= 1);
      assert.ok(run.wall_s > 0);
    }
    // Two of the four replicas that a task begins with drain first.
    assert.ok(runs[0].replica_hours >= 0.4 && runs[0].replica_hours < 0.42);
  });

  it('plays the policy in a file beside others', async () => {
    const path = join(temporaryFolder(), 'policy.json');
    const parameters = {
      ...{ tpotShare: 1, decay: 0, surge: 0, late: 0, spareReplicas: -100, reactionSeconds: 100, spread: 0 },
      ...{ prefillRoom: 0, backlog: 0, correction: 0.1, mostCorrection: 1, allowedMisses: 1 },
      ...{ admissionSeconds: 600, prefixWeight: 1, prefillShare: 5.8, usualWindows: 60 },
      ...{ sessionRoom: 1, sessionTrend: 0, sessionDecay: 0.95, hold: 0, prefillSlack: 0 },
    };
    const { version } = fleet.definition();
    writeFileSync(path, JSON.stringify({ environment: 'fleet', version, task: 'flash_crowds', parameters }));
    const { code, stdout, stderr } = await runCommand(
      ...[...FLEET, 'static:1', path, '--task', 'flash_crowds', '--max-steps', '12', '--json'],
    );
    assert.equal(code, 0, stderr);
    const [one, learned] = JSON.parse(stdout).runs;
    assert.deepEqual([one.policy, learned.policy], ['static:1', path]);
    // It asks for a hundred replicas less than the demand does: for one.
    assert.ok(Math.abs(learned.replica_hours - one.replica_hours) < 0.1, stdout);
  });

  it('plays the requests of a trace in the classes that were asked for', async () => {
    const path = join(temporaryFolder(), 'trace.csv');
    const rows = Array.from({ length: 600 }, (_, i) => `${i / 10},400,50`);
    writeFileSync(path, ['arrival,input,output', ...rows].join('\n'));
    const { code, stdout, stderr } = await runCommand(
      ...[...FLEET, 'static:2', '--traffic', path, '--class-shares', '0.5,0.3,0.2'],
    );
    assert.equal(code, 0, stderr);
    assert.match(stdout, /trace\.csv: 600 requests in 0\.0 h on h100-80gb-llama-3-8b/);
    assert.match(stdout, /static:2 .* 100\.0 % +0\.0 %/);
    const { stdout: json } = await runCommand(
      ...[...FLEET, 'static:2', '--traffic', path, '--class-shares', '0.5,0.3,0.2', '--json'],
    );
    const [run] = JSON.parse(json).runs;
    assert.deepEqual(Object.keys(run.slo_attainment_by_class), ['interactive', 'batch', 'best_effort']);
    assert.equal(run.completed, 600);
  });

  it('refuses what it does not know', async () => {
    const refused: [string[], RegExp][] = [
      [['hpa', 'best'], /one of static\[:number\], hpa.*got "?best/],
      [['--profile', 'h100'], /profile.*h100/],
      [['--class-shares', '0.5,0.5'], /--traffic/],
      [['--max-steps', '9', '--traffic', 'x.csv'], /cannot be used with/],
      [['--task', join(import.meta.dirname, '../package.json')], /package.json is no task: .*streams/],
    ];
    for (const [args, message] of refused) {
      const { code, stdout, stderr } = await runCommand(...FLEET, ...args);
      assert.equal(code, 2, stderr);
      assert.equal(stdout, '');
      assert.match(stderr, message);
    }
  });
});

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
