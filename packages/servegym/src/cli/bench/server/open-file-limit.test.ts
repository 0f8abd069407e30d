import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { openFileLimit, requireOpenFiles } from './open-file-limit.ts';

describe('requireOpenFiles', () => {
  it('lets go what fits, and what cannot be known', () => {
    requireOpenFiles(100, 164);
    requireOpenFiles(1e9, null);
  });

  it('says how many files are needed, how many there are, and what to do', () => {
    assert.throws(() => requireOpenFiles(2048, 1024), {
      name: 'InputError',
      message:
        '2048 sessions need 2112 open files, but this process may have 1024. Raise the limit with `ulimit -n 2112`, or ask for at most 960 sessions.',
    });
  });
});

describe('openFileLimit', () => {
  it('reads the limit of the process', () => {
    const module = JSON.stringify(new URL('open-file-limit.ts', import.meta.url).href);
    const program = `import(${module}).then(({ openFileLimit }) => console.log(openFileLimit()))`;
    const { stdout } = spawnSync('bash', [
      '-c',
      'ulimit -n 321; exec "$0" -e "$1"',
      process.execPath,
      program,
    ]);
    assert.equal(Number(stdout), 321);
    assert.ok(openFileLimit()! > 0);
  });
});
