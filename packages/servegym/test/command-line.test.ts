import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { runServegym } from '../../../maintenance/test-servers/servegym.ts';

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

  for (const [what, args, line] of [
    [
      'a command that is none',
      ['simulat'],
      /^error: unknown command 'simulat' \(code: INVALID_COMMAND_LINE\)$/m,
    ],
    [
      'an option that is missing',
      ['confirm'],
      /^error: required option '--server <url>' not specified \(code: \w+\)$/m,
    ],
    [
      'a value out of range',
      ['simulate', 'chat', '--replicas', 'x'],
      /^error: .*Expected a whole number.* \(code: INVALID_COMMAND_LINE\)$/m,
    ],
    [
      'options that do not go together',
      ['plan', '--model', 'llama-3-8b', '--rate', '3', '--workload', 'chat', '--input-tokens', '9'],
      /^error: expected --workload or --input-tokens, got both \(code: INVALID_COMMAND_LINE\)$/m,
    ],
    [
      'a file that is not there',
      ['confirm', '--server', 'http://127.0.0.1:9/v1', '--profile', 'none.json'],
      /^error: cannot read none\.json: there is no such file \(code: FILE_UNREADABLE\)$/m,
    ],
  ] as const) {
    it(`ends the line of an error with a stable code: ${what}`, async () => {
      const { code, stderr } = await runServegym(...args);
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
