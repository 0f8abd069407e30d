import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { temporaryFolder } from '../../../maintenance/test-servers/temporary-folder.ts';
import { runCommand } from './in-process.ts';

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
    for (const name of ['policy.safetensors', 'policy.onnx', 'checkpoint.safetensors']) {
      assert.ok(inSeed(4, name).equals(readFileSync(join(alone, name))), name);
      assert.ok(!inSeed(3, name).equals(inSeed(4, name)), `${name} of another seed`);
    }
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
      [['--seeds', '0..1', '--algo', 'cem', '--shift', 'rate_1.5'], /expected --algo ppo, .*, got cem/],
      [
        ['--seeds', '0..1', '--algo', 'distill', '--env', 'inferencegym', '--task', '1'],
        /expected --algo ppo, the one that learns inferencegym, got distill/,
      ],
      [['--seeds', '0..1', '--table', 'x.parquet'], /expected --env inferencegym beside --table/],
      [
        ['--queue', 'redis://localhost:1'],
        /expected --seeds beside --queue: a single training with --algo ppo/,
      ],
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
