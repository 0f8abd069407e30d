import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';

const folder = mkdtempSync(join(tmpdir(), 'servegym-run-tests-'));
after(() => rmSync(folder, { recursive: true }));

/** What the runner makes of one test file. */
async function run(source: string) {
  const path = join(folder, 'made-up.test.ts');
  writeFileSync(path, `import test, { before, describe } from 'node:test';\n${source}`);
  const runner = fork(join(import.meta.dirname, 'run-tests.mjs'), [path], { silent: true });
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
    assert.match(output, /✗ bad {2}\(.*made-up\.test\.ts:5:9\)\n\s+Error: the reason/);
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
