import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { playSeason } from '../../../benchmarks/cases/season.ts';
import { runCommand } from './in-process.ts';

describe('a season from end to end', () => {
  it('ranks who plays honestly before who tries every exploit, across a kill of the server', async () => {
    const { ranking, exploits, isVerified, isForgeryFound } = await playSeason({
      ...{ env: 'inferencegym', task: '1', agent: 'baseline', episodes: 20 },
    });
    assert.deepEqual(
      ranking.map(({ rank, name, finished }) => [rank, name, finished]),
      [
        [1, 'honest', 20],
        [2, 'exploits', 9],
      ],
    );
    assert.ok(exploits.length >= 18);
    assert.deepEqual(
      exploits.filter(({ gained }) => gained),
      [],
    );
    assert.deepEqual([isVerified, isForgeryFound], [true, true]);
  });
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
