import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { openSqliteStore } from '@servegym/openenv';
import { runServegym } from '../../../maintenance/test-servers/servegym.ts';
import { runCommand } from './in-process.ts';

const main = join(import.meta.dirname, '..', 'src', 'main.ts');

describe('the command line', () => {
  it('lists its commands, and says of a command that it does not know what is near', async () => {
    const { code, stdout } = await runServegym('--help');
    assert.equal(code, 0);
    assert.match(stdout, /^ {2}simulate +serve traffic/m);
    const unknown = await runServegym('simulat');
    assert.equal(unknown.code, 2);
    assert.match(unknown.stderr, /unknown command 'simulat'[\s\S]*simulate/);
  });

  it('checks a file of sessions instead of serving it', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'servegym-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const file = join(folder, 'sessions.db');
    const check = (store: string) => runCommand('serve', '--check-store', '--store', store);
    assert.deepEqual((await check(file)).code, 2);
    assert.deepEqual((await check('memory')).code, 2);
    await openSqliteStore(file).close();
    const { code, stdout } = await check(file);
    assert.deepEqual([code, stdout], [0, `${file}: 0 sessions, all right\n`]);
    truncateSync(file, 0);
    assert.equal((await check(file)).code, 1);
  });

  it('shows the help of each of its commands on a screen', async () => {
    for (const words of [
      ...['serve', 'endpoint', 'simulate', 'plan', 'tune', 'diff'].map((name) => [name]),
      ...['train', 'evaluate', 'validate', 'worker'].map((name) => [name]),
      ...['create', 'admit', 'serve', 'close', 'verify'].map((name) => ['season', name]),
      ...['list', 'show', 'make', 'confirm'].map((name) => ['profile', name]),
      ...['describe', 'convert', 'draw'].map((name) => ['traffic', name]),
    ]) {
      const { stdout } = await runCommand(...words, '--help');
      const lines = stdout.trimEnd().split('\n');
      const options = lines.filter((line) => line.startsWith('  --'));
      assert.ok(lines.length <= 40 && options.length <= 20, `${words}: ${lines.length}, ${options.length}`);
    }
  });

  for (const [what, args, line] of [
    [
      'a command that is none',
      ['simulat'],
      /^error: unknown command 'simulat' \(code: INVALID_COMMAND_LINE\)$/m,
    ],
    [
      'an option that is missing',
      ['profile', 'confirm', 'http://127.0.0.1:9/v1'],
      /^error: required option '--profile <name\|file\.json>' not specified \(code: \w+\)$/m,
    ],
    [
      'a value out of range',
      ['simulate', 'chat', '--replicas', 'x'],
      /^error: .*Expected a whole number.* \(code: INVALID_COMMAND_LINE\)$/m,
    ],
    [
      'options that do not go together',
      ['simulate', 'chat', '--replicas', '3', '--split'],
      /^error: option '--split \[prefill:decode\]' cannot be used with option '--replicas <n>' \(code: \w+\)$/m,
    ],
    [
      'a file that is not there',
      ['profile', 'confirm', 'http://127.0.0.1:9/v1', '--profile', 'none.json'],
      /^error: cannot read none\.json: there is no such file \(code: FILE_UNREADABLE\)$/m,
    ],
  ] as const) {
    it(`ends the line of an error with a stable code: ${what}`, async () => {
      const { code, stderr } = await runCommand(...args);
      assert.equal(code, 2);
      assert.match(stderr, line);
    });
  }

  it('ends without a word when nobody reads on', async () => {
    const child = spawn(process.execPath, [main, '--help'], { stdio: ['ignore', 'pipe', 'pipe'] });
    child.stdout.destroy();
    let stderr = '';
    child.stderr.on('data', (chunk) => {
      stderr += chunk;
    });
    const [code] = await once(child, 'close');
    assert.deepEqual([code, stderr], [0, '']);
  });
});
