import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { runServegym } from '../../../maintenance/test-servers/servegym.ts';

const script = join(import.meta.dirname, '../../../benchmarks/season.ts');

describe('a season from end to end', () => {
  it('ranks who plays honestly before who tries every exploit, across a kill of the server', async () => {
    const options = ['--env', 'inferencegym', '--task', '1', '--agent', 'baseline', '--json'];
    const { stdout } = await promisify(execFile)(process.execPath, [script, ...options]);
    const { ranking, exploits, verified, forgery_found } = JSON.parse(stdout);
    assert.deepEqual(
      ranking.map(({ rank, name, finished }: { rank: number; name: string; finished: number }) => [
        ...[rank, name, finished],
      ]),
      [
        [1, 'honest', 20],
        [2, 'exploits', 9],
      ],
    );
    assert.ok(exploits.length >= 18);
    assert.deepEqual(
      exploits.filter(({ gained }: { gained: boolean }) => gained),
      [],
    );
    assert.deepEqual([verified, forgery_found], [true, true]);
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
      const { code, stderr } = await runServegym('season', ...args);
      assert.match(stderr, message);
      assert.equal(code, 2);
    });
  }
});
