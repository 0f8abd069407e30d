import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { openFileLimit, requestGrid, requireOpenFiles } from './command.ts';

describe('requestGrid', () => {
  it('takes numbers, and ranges that double and keep their end', () => {
    assert.deepEqual(requestGrid('7'), [7]);
    assert.deepEqual(requestGrid('1, 8,64'), [1, 8, 64]);
    assert.deepEqual(requestGrid('1..16'), [1, 2, 4, 8, 16]);
    assert.deepEqual(requestGrid('1..1000,16384'), [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 16_384]);
    assert.deepEqual(requestGrid('5..5'), [5]);
  });

  it('refuses what it cannot run', () => {
    for (const text of ['', '0', '16385', '1.5', '-1', '1,,2', 'all', '1..99999', '8..1']) {
      assert.throws(() => requestGrid(text), { code: 'commander.invalidArgument' }, text);
    }
    assert.throws(() => requestGrid(`${'1,'.repeat(64)}1`), /at most 64 numbers, got 65/);
  });
});

describe('the limit of open files', () => {
  it('allows what fits, and what cannot be known', () => {
    requireOpenFiles(100, 164);
    requireOpenFiles(1e9, null);
  });

  it('is told with the files that are needed, and what to do', () => {
    assert.throws(() => requireOpenFiles(2048, 1024), {
      name: 'InputError',
      message:
        '2048 sessions need 2112 open files, but this process may have 1024. Raise the limit with `ulimit -n 2112`, or ask for at most 960 sessions.',
    });
  });

  it('is read from the process', () => {
    const module = JSON.stringify(new URL('command.ts', import.meta.url).href);
    const program = `import(${module}).then(({ openFileLimit }) => console.log(openFileLimit()))`;
    const command = ['-c', 'ulimit -n 321; exec "$0" -e "$1"', process.execPath, program];
    assert.equal(Number(spawnSync('bash', command).stdout), 321);
    assert.ok(openFileLimit()! > 0);
  });
});
