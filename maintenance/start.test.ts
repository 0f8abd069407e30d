import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import { it } from 'node:test';

/** Runs `npm start` on a free port and waits for the address of the page. */
async function npmStart() {
  const npm = spawn('npm', ['start', '--silent'], {
    cwd: dirname(import.meta.dirname),
    env: { ...process.env, PORT: '0', HOST: '127.0.0.1' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  // It closes only when the last process that writes to the pipe is gone, and the server is one of them.
  const allEnded = once(npm, 'close');
  for await (const line of createInterface({ input: npm.stdout })) {
    const page = /ready: (\S+)/.exec(line)?.[1];
    if (page) return { npm, page, allEnded };
  }
  throw new Error('npm start ended before the page was ready');
}

it('npm start serves the page, and takes the server with it when it is terminated', async () => {
  const { npm, page, allEnded } = await npmStart();
  assert.equal((await fetch(page)).status, 200);
  npm.stdout.resume();
  npm.kill('SIGTERM');
  await allEnded;
  await assert.rejects(fetch(page));
});
