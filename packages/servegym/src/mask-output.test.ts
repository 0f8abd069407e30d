import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

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
