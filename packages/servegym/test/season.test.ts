import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { runCommand } from './in-process.ts';

it('servegym season prints nothing of a name that could steer a terminal', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'season-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const created = await runCommand('season', 'create', join(folder, 'a.db'), '--name', 'a\u001b[2J');
  assert.deepEqual([created.code, /\(code: INVALID_NAME\)/.test(created.stderr)], [2, true]);
  assert.equal((created.stdout + created.stderr).includes('\u001b'), false);
  const rules = { name: 'spring', task_ids: ['static_workload'], episodes: 20, minutes: 1, created_at: 0 };
  const environment = { id: 'llmserve', version: '0\u001b[2J' };
  const season = { ...rules, environment, commitment: '' };
  const file = join(folder, 'results.json');
  writeFileSync(file, JSON.stringify({ format: 'openenv-season/2', season, secret: '', submissions: [] }));
  const { code, stdout, stderr } = await runCommand('season', 'verify', file);
  assert.equal(code, 1);
  assert.match(stderr, /played on llmserve 0\?\[2J/);
  assert.equal((stdout + stderr).includes('\u001b'), false);
});

describe('servegym season, with bad input', () => {
  for (const [what, args, message] of [
    [
      'creates none on a task that is not there',
      ['create', 'x.db', '--name', 'x', '--task', 'none'],
      /expected --task to be one of static_workload/,
    ],
    [
      'creates none of few episodes',
      ['create', 'x.db', '--name', 'x', '--episodes', '19'],
      /whole number from 20 to/,
    ],
    ['serves none that is not there', ['serve', './none.db'], /There is no file \.\/none\.db/],
    [
      'verifies no file that is no results',
      ['verify', join(import.meta.dirname, '../package.json')],
      /expected the results of a season in .*: format/,
    ],
  ] as const) {
    it(what, async () => {
      const { code, stderr } = await runCommand('season', ...args);
      assert.match(stderr, message);
      assert.equal(code, 2);
    });
  }
});
