import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { temporaryFolder } from '../../../maintenance/test-servers/temporary-folder.ts';
import { runCommand } from './in-process.ts';

const main = join(import.meta.dirname, '..', 'src', 'main.ts');

describe('servegym train', () => {
  const folder = temporaryFolder();
  const plan = ['--task', 'static_workload', '--steps', '4000', '--seed', '1', '--json'];
  /** Folder of the training that nothing stops. */
  const whole = join(folder, 'whole');

  it('learns, keeps weights, metrics and curve, and what it learned can be evaluated', async () => {
    const trained = await runCommand('train', ...plan, '--out', whole);
    assert.equal(trained.code, 0, trained.stderr);
    const report = JSON.parse(trained.stdout);
    assert.equal(report.steps, 4096);
    assert.ok(report.steps_per_s > 0);
    assert.match(trained.stderr, /100 % {2}4,096 steps/);

    const metrics = metricsOf(whole);
    assert.deepEqual(
      metrics.map((update) => update.steps),
      [2048, 4096],
    );
    assert.equal(metrics[1].mean_return, report.final_return);
    assert.match(readFileSync(report.files.curve, 'utf8'), /^<svg .*PPO on static_workload, seed 1/s);
    assert.match(readFileSync(report.files.page, 'utf8'), /<title>PPO on static_workload, seed 1<\/title>/);

    const evaluated = await runCommand('evaluate', report.files.policy, '--episodes', '2', '--json');
    assert.equal(evaluated.code, 0, evaluated.stderr);
    const { agent, tasks } = JSON.parse(evaluated.stdout);
    assert.equal(agent, 'ppo');
    assert.deepEqual(Object.keys(tasks), ['static_workload']);

    const elsewhere = await runCommand('evaluate', report.files.policy, '--task', 'bursty_workload');
    assert.equal(elsewhere.code, 2);
    assert.match(
      elsewhere.stderr,
      /[Ee]xpected policies that can play bursty_workload, got ppo for static_workload/,
    );
  });

  it('learns one policy for any server, which plays any task', async () => {
    const out = join(folder, 'any');
    const trained = await runCommand('train', '--servers', 'any', '--steps', '1', '--out', out, '--json');
    assert.equal(trained.code, 0, trained.stderr);
    const policy = join(out, 'policy.safetensors');
    const evaluated = await runCommand(
      ...[
        'evaluate',
        policy,
        '--task',
        'bursty_workload',
        '--shift',
        'other_gpu',
        '--episodes',
        '1',
        '--json',
      ],
    );
    assert.equal(evaluated.code, 0, evaluated.stderr);
    assert.deepEqual(Object.keys(JSON.parse(evaluated.stdout).tasks), ['bursty_workload']);
  });

  it('keeps the best configuration found so far when Ctrl-C stops the search', async () => {
    const out = join(folder, 'static');
    const args = ['train', '--algo', 'static', '--task', 'static_workload', '--out', out, '--json'];
    const search = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    search.stderr.once('data', () => search.kill('SIGTERM'));
    const [stdout, [code]] = await Promise.all([text(search.stdout), once(search, 'exit')]);
    assert.equal(code, 143);
    const { final_return, files } = JSON.parse(stdout);
    const { training } = JSON.parse(readFileSync(files.policy, 'utf8'));
    assert.equal(training.mean_return, final_return);

    const evaluated = await runCommand('evaluate', files.policy, '--episodes', '2', '--json');
    assert.equal(evaluated.code, 0, evaluated.stderr);
    assert.equal(JSON.parse(evaluated.stdout).agent, 'static-tuned');
  });

  function metricsOf(out: string): Record<string, number>[] {
    const lines = readFileSync(join(out, 'metrics.jsonl'), 'utf8').trimEnd().split('\n');
    return lines.map((line) => JSON.parse(line));
  }

  it('ends with exit code 2 without a task, or where it cannot write', async () => {
    const file = join(folder, 'a-file');
    writeFileSync(file, '');
    for (const [args, message] of [
      [[], /expected --task, one of static_workload, bursty_workload, adversarial_multitenant/],
      [['--task', 'holiday'], /expected a task of llmserve, one of static_workload, .*, got holiday/],
      [['--task', 'static_workload', '--steps', 'many'], /Expected a whole number from 1 to/],
      [['--task', 'static_workload', '--out', join(file, 'run')], /cannot write to .*a-file/],
    ] as const) {
      const { code, stderr } = await runCommand('train', ...args);
      assert.match(stderr, message);
      assert.equal(code, 2);
    }
  });
});

describe('servegym train over several seeds', () => {
  const folder = temporaryFolder();

  it('writes for each seed what a training with that seed alone writes, bit for bit', async () => {
    const plan = ['train', '--task', '1', '--env', 'inferencegym', '--steps', '1000', '--json'];
    const [together, alone] = [join(folder, 'together'), join(folder, 'alone')];
    const many = await runCommand(...plan, '--seeds', '3..4', '--threads', '2', '--out', together);
    assert.equal(many.code, 0, many.stderr);
    const report = JSON.parse(many.stdout);
    assert.deepEqual(
      report.runs.map(({ seed, steps }: { seed: number; steps: number }) => [seed, steps]),
      [
        [3, 1024],
        [4, 1024],
      ],
    );
    const one = await runCommand(...plan, '--seed', '4', '--out', alone);
    assert.equal(one.code, 0, one.stderr);
    assert.equal(report.runs[1].final_return, JSON.parse(one.stdout).final_return);
    const inSeed = (seed: number, name: string) => readFileSync(join(together, `seed-${seed}`, name));
    const policy = 'policy.safetensors';
    assert.ok(inSeed(4, policy).equals(readFileSync(join(alone, policy))));
    assert.ok(!inSeed(3, policy).equals(inSeed(4, policy)), 'another seed learns something else');
    const learned = (lines: Buffer) =>
      lines
        .toString()
        .trimEnd()
        .split('\n')
        .map((line) => {
          const { wall_s: _, steps_per_s: __, ...figures } = JSON.parse(line);
          return figures;
        });
    assert.deepEqual(
      learned(inSeed(4, 'metrics.jsonl')),
      learned(readFileSync(join(alone, 'metrics.jsonl'))),
    );
    assert.ok(existsSync(join(together, 'seed-3', 'learning-curve.html')));
  });

  it('refuses what has no seeds or no jobs, before it writes anything', async () => {
    const out = join(folder, 'never');
    for (const [args, message] of [
      [['--seeds', '4..3'], /Expected a range of at most 1000 seeds such as 0\.\.9, got `4\.\.3`/],
      [['--seeds', '0..1', '--seed', '3'], /'--seeds <from\.\.to>' cannot be used with option '--seed <n>'/],
      [['--seeds', '0..1', '--algo', 'static', '--shift', 'rate_1.5'], /expected --algo ppo, .*, got static/],
      [
        ['--seeds', '0..1', '--algo', 'static', '--env', 'inferencegym', '--task', '1'],
        /expected --algo ppo, the one that learns inferencegym, got static/,
      ],
      [['--seeds', '0..1', '--table', 'x.parquet'], /--table means nothing to llmserve/],
      [['--queue', 'redis://localhost:1'], /expected --seeds beside --queue: a single training has no jobs/],
      [
        ['--seeds', '0..1', '--queue', 'redis://127.0.0.1:1'],
        /Cannot use the queue at redis:\/\/127\.0\.0\.1:1/,
      ],
    ] as const) {
      const { code, stderr } = await runCommand(
        ...['train', '--task', 'static_workload', '--out', out, ...args],
      );
      assert.match(stderr, message);
      assert.equal(code, 2);
      assert.ok(!existsSync(out));
    }
  });
});
