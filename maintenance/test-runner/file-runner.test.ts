import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, describe, it } from 'node:test';
import { FileRunner } from './file-runner.ts';

const folder = mkdtempSync(join(tmpdir(), 'servegym-file-runner-'));
after(() => rmSync(folder, { recursive: true }));

function testFile(name: string, source: string): string {
  const path = join(folder, `${name}.test.ts`);
  writeFileSync(
    path,
    `import { spawn } from 'node:child_process';\nimport test from 'node:test';\n${source}`,
  );
  return path;
}

/** A server to which a process connects, so that the end of the connection tells the end of the process. */
async function watchProcesses(count: number) {
  const server = createServer();
  after(() => server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const { promise: everybodyHere, resolve } = Promise.withResolvers<void>();
  const ends: Promise<unknown>[] = [];
  server.on('connection', (socket: Socket) => {
    socket.on('error', () => {});
    ends.push(once(socket, 'close'));
    if (ends.length === count) resolve();
  });
  const source = `
    import('node:net').then(({ connect }) => connect(${port}, '127.0.0.1').on('error', () => {}));
    process.on('SIGTERM', () => {});`;
  return { source, everybodyHere, everybodyGone: () => Promise.all(ends) };
}

describe('a runner of test files', () => {
  it('kills a file that hangs with all that it has started, says which test it was, and goes on', async (t) => {
    const { source, everybodyHere, everybodyGone } = await watchProcesses(2);
    const hangs = testFile(
      'hangs',
      `test('good', () => {});
      test('never ends', () => new Promise(() => {
        ${source}
        spawn(process.execPath, ['-e', ${JSON.stringify(source)}], { stdio: 'inherit' });
      }));`,
    );
    const good = testFile('good', "test('good', () => {});");

    t.mock.timers.enable({ apis: ['setTimeout'] });
    const runner = new FileRunner(240);
    const running = runner.run(hangs);
    await everybodyHere;
    // The first test has ended, and the second has begun.
    while (runner.current?.passed !== 1 || runner.current.running.size !== 1) await new Promise(setImmediate);
    t.mock.timers.tick(240_000);
    const hung = await running;
    await everybodyGone();
    assert.equal(hung.passed, 1);
    assert.equal(hung.failures.length, 2);
    assert.match(hung.failures[0], /hangs\.test\.ts takes longer than 240 s$/);
    assert.match(hung.failures[1], /^never ends {2}\(.*hangs\.test\.ts:4:7\) did not end$/);

    const next = await runner.run(good);
    runner.close();
    assert.deepEqual([next.passed, next.failures], [1, []]);
  });

  it('goes on after a file that kills everything around it', async () => {
    const runner = new FileRunner(60);
    const killer = await runner.run(testFile('killer', "test('kills', () => process.kill(0, 'SIGKILL'));"));
    assert.match(killer.failures[0], /killer\.test\.ts ended its runner with SIGKILL$/);
    const next = await runner.run(testFile('good', "test('good', () => {});"));
    runner.close();
    assert.deepEqual([next.passed, next.failures], [1, []]);
  });

  it('leaves nothing running when it is killed itself', async () => {
    const { source, everybodyHere, everybodyGone } = await watchProcesses(1);
    const path = testFile('endless', `test('never ends', () => new Promise(() => { ${source} }));`);
    const runner = fork(join(dirname(import.meta.dirname), 'run-tests.mjs'), [path], { silent: true });
    await everybodyHere;
    runner.kill('SIGKILL');
    await everybodyGone();
  });
});
