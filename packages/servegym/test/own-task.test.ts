import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { llmserve } from '@servegym/environments';
import { runServegym } from '../../../maintenance/test-servers/servegym.ts';
import { temporaryFolder } from '../../../maintenance/test-servers/temporary-folder.ts';
import { loadTask } from '../src/cli/arguments/scenario-options.ts';
import { runCommand } from './in-process.ts';

const example = llmserve.tasks.find(
  await loadTask(join(import.meta.dirname, '../../environments/examples/fixed-arrangement.ts')),
)!;
const MASKED = ['quantization_tier', 'prefill_decode_split'] as const;

describe("training and comparing on a task of one's own", () => {
  const folder = temporaryFolder();
  let file: string;
  let changed: string;
  before(() => {
    [file, changed] = [join(folder, 'small.json'), join(folder, 'changed.json')];
    const small = { ...example, id: 'small_arrangement', windows: 6 };
    writeFileSync(file, JSON.stringify(small));
    writeFileSync(changed, JSON.stringify({ ...small, windows: 7 }));
  });

  const servegym = async (...args: string[]) => {
    const { code, stdout, stderr } = await runCommand(...args, '--json');
    return { code, stderr, told: code === 0 ? JSON.parse(stdout) : undefined };
  };

  it('learns what can be evaluated and compared there, and nowhere else', async () => {
    const out = join(folder, 'run');
    const trained = await servegym(
      ...['train', '--task', file, '--algo', 'static', '--seed', '2', '--out', out],
    );
    assert.equal(trained.code, 0, trained.stderr);
    assert.equal(trained.told.task, 'small_arrangement');
    const { policy } = trained.told.files;
    const { task, task_digest, action } = JSON.parse(readFileSync(policy, 'utf8'));
    assert.equal(task, 'small_arrangement');
    assert.match(task_digest, /^[0-9a-f]{16}$/);
    for (const knob of MASKED) assert.equal(action[knob], example.defaultAction[knob]);

    const evaluated = await servegym(
      ...['evaluate', policy, '--task', file, '--episodes', '2', '--threads', '1'],
    );
    assert.equal(evaluated.code, 0, evaluated.stderr);
    assert.equal(evaluated.told.agent, 'static-tuned');
    assert.deepEqual(Object.keys(evaluated.told.tasks), ['small_arrangement']);

    const compared = await servegym(
      ...['evaluate', 'default', policy, '--task', file, '--rate-scale', '0.5', '--profile'],
      ...[example.profile, '--episodes', '2', '--threads', '1'],
    );
    assert.equal(compared.code, 0, compared.stderr);
    const { rate_scale, profile, comparisons } = compared.told;
    assert.deepEqual([rate_scale, profile], [0.5, example.profile]);
    assert.deepEqual(Object.keys(comparisons[0].tasks), ['small_arrangement']);

    // In processes of their own, which have not met the task before.
    for (const [args, message] of [
      [['--task', changed], /small_arrangement with the digest [0-9a-f]{16}, got one for .*train anew/],
      [[], /got one for small_arrangement: if that is a task of your own, give its file as well/],
    ] as const) {
      const refused = await runServegym('evaluate', policy, ...args);
      assert.equal(refused.code, 2);
      assert.match(refused.stderr, message);
    }
  });

  it('says what does not go together', async () => {
    for (const [args, message] of [
      [['train', '--task', file, '--env', 'inferencegym'], /expected a task of inferencegym, one of 1, 2, 3/],
      [
        ['evaluate', 'random', 'baseline', '--env', 'inferencegym', '--profile', 'x'],
        /--profile means nothing to inferencegym/,
      ],
      [
        ['evaluate', 'default', 'random', '--split', 'shifted', '--shift', 'rate_1.5'],
        /--split shifted chooses the shift itself: leave out --shift rate_1\.5/,
      ],
    ] as const) {
      const { code, stderr } = await runCommand(...args);
      assert.match(stderr, message);
      assert.equal(code, 2);
    }
  });
});
