import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import manifest from '../package.json' with { type: 'json' };
import { OLDEST_NODE, requireNode } from './node-process.ts';

const program = fileURLToPath(new URL('main.ts', import.meta.url));

function servegym(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], { encoding: 'utf8' });
  return { status, output: stdout + stderr };
}

test('no command prints the password of a URL that it is given', () => {
  for (const args of [
    ['serve', '--port', '0', '--store', 'postgres://me:hunter2@127.0.0.1:1/db'],
    ['serve', '--port', '0', '--store', 'redis://:hunter2@127.0.0.1:1'],
    ['worker', '--queue', 'redis://:hunter2@127.0.0.1:1'],
    ['worker', '--queue', 'amqp://me:hunter2@127.0.0.1:1'],
    ['validate', '--url', 'http://me:hunter2@127.0.0.1:1'],
  ]) {
    const { status, output } = servegym(...args);
    assert.notEqual(status, 0, args.join(' '));
    assert.match(output, /\*\*\*@127\.0\.0\.1:1/, args.join(' '));
    assert.doesNotMatch(output, /hunter2/, args.join(' '));
  }
});

test('a store of an unknown kind is refused, and no folder of its name is made', () => {
  const { status, output } = servegym('serve', '--port', '0', '--store', 'postgres://host/db');
  assert.equal(status, 2);
  assert.match(output, /Expected --store or SERVEGYM_STORE to be a file, redis:\/\//);
});

test('a Node that is too old is named before anything fails on it', () => {
  assert.equal(manifest.engines.node, `>=${OLDEST_NODE}`);
  for (const version of ['22.18.0', '22.100.0', '24.0.0', '100.0.0']) requireNode(version);
  for (const version of ['9.1.0', '20.20.2', '22.2.0', '22.17.1']) {
    assert.throws(() => requireNode(version), {
      code: 'NODE_TOO_OLD',
      message: new RegExp(`22.18 .*${version}`),
    });
  }
});
