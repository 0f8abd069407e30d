import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { runCommand } from './in-process.ts';

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
