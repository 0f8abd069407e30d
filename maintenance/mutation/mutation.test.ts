import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, describe, it } from 'node:test';
import { AREAS } from './faults.ts';
import { faultySource } from './faulty-source.ts';
import { runWithFault } from './run-with-fault.ts';

const folder = mkdtempSync(join(tmpdir(), 'servegym-mutation-'));
after(() => rmSync(folder, { recursive: true }));

const sum = join(folder, 'sum.ts');
writeFileSync(sum, 'export const sum = (a: number, b: number): number => a + b;\n');

/** A test file that runs some code with `sum` at hand. */
function testFile(name: string, code: string): string {
  const path = join(folder, `${name}.ts`);
  writeFileSync(path, `import { sum } from './sum.ts';\n${code}\n`);
  return path;
}

const fault = { path: sum, search: 'a + b', replace: 'a - b' };

describe('a fault', () => {
  it('fails the tests that depend on it, and leaves the file as it was', async () => {
    const exact = testFile('exact', 'if (sum(2, 3) !== 5) throw new Error("wrong");');
    const blind = testFile('blind', 'if (sum(2, 0) !== 2) throw new Error("wrong");');
    assert.equal(await runWithFault(exact, 60), 'passed');
    assert.equal(await runWithFault(exact, 60, fault), 'failed');
    assert.equal(await runWithFault(blind, 60, fault), 'passed');
    assert.equal(await runWithFault(exact, 60), 'passed');
  });

  it('is there in worker threads and child processes too', async () => {
    const worker = `
      import { Worker } from 'node:worker_threads';
      new Worker(new URL('./exact.ts', import.meta.url)).on('error', () => process.exit(3));`;
    const child = `
      import { execFileSync } from 'node:child_process';
      execFileSync(process.execPath, [new URL('./exact.ts', import.meta.url).pathname], { stdio: 'ignore' });`;
    for (const path of [testFile('worker', worker), testFile('child', child)]) {
      assert.equal(await runWithFault(path, 60), 'passed');
      assert.equal(await runWithFault(path, 60, fault), 'failed');
    }
  });

  it('that hangs a test is found by the time limit', async () => {
    const path = testFile('endless', 'while (sum(1, 1) === 0);');
    assert.equal(await runWithFault(path, 1, fault), 'hung');
  });

  it('is refused where its text stands never or twice', () => {
    assert.throws(() => faultySource('a + b', { search: 'a * b', replace: '' }), /`a \* b` once, found it 0/);
    assert.throws(() => faultySource('a + a', { search: 'a', replace: '' }), /`a` once, found it 2 times/);
    assert.equal(faultySource('a + b', { search: 'a', replace: '$&' }), '$& + b');
  });
});

describe('the list of faults', () => {
  it('data: fits the sources', () => {
    const root = dirname(dirname(import.meta.dirname));
    for (const { path, tests, faults } of Object.values(AREAS).flat()) {
      const source = readFileSync(join(root, path), 'utf8');
      for (const [search, replace] of faults)
        assert.doesNotThrow(() => faultySource(source, { search, replace }), path);
      for (const test of tests) readFileSync(join(root, test));
    }
  });
});
