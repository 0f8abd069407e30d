import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { it } from 'node:test';

const root = dirname(import.meta.dirname);

/** Stands in for npm: says where it runs and what is there, and fails. */
const NPM = `#!/usr/bin/env bash
echo "args: $*"
echo "folder: $PWD"
echo "beside: $(ls -A ..)"
echo "head: $(git rev-parse HEAD), changes: $(git status --porcelain | wc -l)"
cat
echo "3 passed, 1 failed"
exit 7
`;

it('.ci/run tests a clone with nothing beside it and what it publishes, sums both, and removes it', () => {
  const bin = mkdtempSync(join(tmpdir(), 'servegym-ci-'));
  try {
    writeFileSync(join(bin, 'npm'), NPM);
    chmodSync(join(bin, 'npm'), 0o755);
    const head = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' }).stdout.trim();
    const { status, stdout, stderr } = spawnSync('bash', [join(root, '.ci', 'run')], {
      cwd: tmpdir(),
      env: { ...process.env, CI: 'true', PATH: `${bin}${delimiter}${process.env.PATH}` },
      input: 'not for the tests',
      encoding: 'utf8',
    });
    assert.equal(stderr, '');
    assert.equal(status, 1);
    const [, folder] = stdout.split('\n');
    const clone = folder!.replace('folder: ', '');
    const ran = (script: string) => [
      `args: run ${script} --silent`,
      `folder: ${clone}`,
      'beside: servegym',
      `head: ${head}, changes: 0`,
      '3 passed, 1 failed',
    ];
    assert.deepEqual(stdout.trimEnd().split('\n'), [
      ...ran('test'),
      ...ran('test:release'),
      '6 passed, 2 failed',
    ]);
    assert.ok(!clone.startsWith(root));
    assert.ok(!existsSync(dirname(clone)));
  } finally {
    rmSync(bin, { recursive: true });
  }
});
