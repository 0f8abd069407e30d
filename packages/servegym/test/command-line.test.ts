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
    assert.match(stdout, /^ {2}simulate +serve a trace/m);
    const unknown = await runServegym('simulat');
    assert.equal(unknown.code, 2);
    assert.match(unknown.stderr, /unknown command 'simulat'[\s\S]*simulate/);
  });

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
