import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { startTestFile } from './run-tests.ts';

const RUNNER = join(import.meta.dirname, 'run-tests.ts');
const folder = mkdtempSync(join(tmpdir(), 'servegym-run-tests-'));
after(() => rmSync(folder, { recursive: true }));

function testFile(name: string, source: string): string {
  const path = join(folder, `${name}.test.ts`);
  writeFileSync(
    path,
    `import { spawn } from 'node:child_process'; import { once } from 'node:events';\nimport test, { before, describe } from 'node:test';\n${source}`,
  );
  return path;
}

/** Result of the runner for one test file. */
async function run(source: string) {
  const runner = fork(RUNNER, [testFile('made-up', source)], { silent: true });
  let output = '';
  runner.stdout!.on('data', (chunk) => {
    output += chunk;
  });
  const [[counts], [code]] = await Promise.all([once(runner, 'message'), once(runner, 'close')]);
  return { ...(counts as { passed: number; failed: number }), code, output };
}

describe('the test runner', () => {
  it('counts tests, wherever they are nested, and no suites', async () => {
    const { passed, failed, code, output } = await run(`
      test('one', () => {});
      describe('suite', () => { test('two', () => {}); test('three', () => {}); });
    `);
    assert.deepEqual({ passed, failed, code }, { passed: 3, failed: 0, code: 0 });
    assert.match(output, /^✓ .*made-up\.test\.ts {2}3 tests/);
  });

  it('tells what failed, where, and what the file wrote', async () => {
    const { passed, failed, code, output } = await run(`
      test('good', () => {});
      describe('suite', () => {
        test('bad', () => { console.log('a trace'); throw new Error('the reason'); });
      });
    `);
    assert.deepEqual({ passed, failed, code }, { passed: 1, failed: 1, code: 1 });
    assert.match(output, /✗ bad {2}\(.*made-up\.test\.ts:6:9\)\n\s+Error: the reason/);
    assert.match(output, /a trace/);
  });

  it('counts what did not run as failed', async () => {
    for (const source of [
      "test.skip('skipped', () => {});",
      "test.todo('to do');",
      "test('hopeful', { todo: true }, () => {});",
      "describe.skip('skipped', () => { test('inside', () => {}); });",
      "describe('suite', () => { before(() => { throw new Error('no'); }); test('inside', () => {}); });",
    ]) {
      const { passed, failed, code } = await run(source);
      assert.equal(passed, 0, source);
      assert.notEqual(failed, 0, source);
      assert.equal(code, 1, source);
    }
  });

  it('is not deceived by a file that dies, or ends before its tests do', async () => {
    for (const source of [
      "throw new Error('while loading');",
      "test('killed', () => { process.kill(process.pid, 'SIGKILL'); });",
      "test('one', () => {}); test('leaves', () => process.exit(0)); test('never', () => {});",
      'export const nothing = 1;',
    ]) {
      const { failed, code } = await run(source);
      assert.equal(failed, 1, source);
      assert.equal(code, 1, source);
    }
  });
});

/** A server to which a process connects, so that the end of the connection tells the end of the process. */
async function watchProcesses(count: number) {
  const server = createServer();
  after(() => server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const { promise: allStarted, resolve } = Promise.withResolvers<void>();
  const ends: Promise<unknown>[] = [];
  server.on('connection', (socket: Socket) => {
    socket.on('error', () => {});
    ends.push(once(socket, 'close'));
    if (ends.length === count) resolve();
  });
  const source = `
    import('node:net').then(({ connect }) => connect(${port}, '127.0.0.1').on('error', () => {}));
    process.on('SIGTERM', () => {});`;
  return { source, allStarted, allEnded: () => Promise.all(ends) };
}

describe('a test file', () => {
  it('is killed when it hangs, with all that it has started, and the test is named', async (t) => {
    const { source, allStarted, allEnded } = await watchProcesses(2);
    const hangs = testFile(
      'hangs',
      `test('good', () => {});
      test('never ends', () => new Promise(() => {
        ${source}
        spawn(process.execPath, ['-e', ${JSON.stringify(source)}], { stdio: 'inherit' });
      }));`,
    );
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { result, ended } = startTestFile(hangs, 240);
    await allStarted;
    // The first test has ended, and the second has begun.
    while (result.passed !== 1 || result.running.size !== 1) await new Promise(setImmediate);
    t.mock.timers.tick(240_000);
    const { passed, failures } = await ended;
    await allEnded();
    assert.equal(passed, 1);
    assert.equal(failures.length, 2);
    assert.match(failures[0], /hangs\.test\.ts takes longer than 240 s$/);
    assert.match(failures[1], /^never ends {2}\(.*hangs\.test\.ts:4:7\) did not end$/);
  });

  it('takes with it what it has left running', async () => {
    const { source, allStarted, allEnded } = await watchProcesses(1);
    const path = testFile(
      'leaves',
      `test('good', async () => {
        const child = spawn(process.execPath, ['-e', ${JSON.stringify(`${source} setInterval(() => {}, 1e6); console.log('up')`)}]);
        await once(child.stdout, 'data');
        child.unref(); child.stdout.destroy(); child.stderr.destroy(); child.stdin.destroy();
      });`,
    );
    const { ended } = startTestFile(path, 60);
    await allStarted;
    const { passed, failures } = await ended;
    await allEnded();
    assert.deepEqual([passed, failures], [1, []]);
  });

  it('does not kill its runner with everything else around it', async () => {
    const path = testFile('killer', "test('kills', () => process.kill(0, 'SIGKILL'));");
    const { failures } = await startTestFile(path, 60).ended;
    assert.match(failures[0], /killer\.test\.ts ended with SIGKILL$/);
  });

  it('is killed when its runner is', async () => {
    const { source, allStarted, allEnded } = await watchProcesses(1);
    const path = testFile('endless', `test('never ends', () => new Promise(() => { ${source} }));`);
    const runner = fork(RUNNER, [path], { silent: true });
    await allStarted;
    runner.kill('SIGKILL');
    await allEnded();
  });
});
