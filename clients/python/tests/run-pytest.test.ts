import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';

const python =
  process.env.SERVEGYM_PYTHON ?? assert.fail('SERVEGYM_PYTHON is not set. Run the tests with `npm test`.');

/** Pytest's report of each test of this folder, and its output where there is no such report. */
async function runPytest(): Promise<{ output: string; report: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'servegym-pytest-'));
  const report = join(folder, 'report.xml');
  const options = ['-q', '-p', 'no:cacheprovider', '--tb=short', `--junitxml=${report}`];
  try {
    const { stdout } = await promisify(execFile)(python, ['-m', 'pytest', ...options, import.meta.dirname], {
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' },
    }).catch((error: { stdout: string; stderr: string }) => ({ stdout: `${error.stdout}${error.stderr}` }));
    return { output: stdout, report: readFileSync(report, 'utf8') };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const { output, report } = await runPytest();

describe('the Python package', () => {
  const cases = [
    ...report.matchAll(/<testcase classname="([^"]*)" name="([^"]*)"[^>]*?(\/>|>.*?<\/testcase>)/gs),
  ];
  it('has tests', () => assert.ok(cases.length > 10, output));
  for (const [, module, name, body] of cases) {
    it(`${module?.split('.').at(-1)}: ${name?.replaceAll('_', ' ')}`, () => {
      assert.doesNotMatch(body ?? '', /<(failure|error|skipped)/, output);
    });
  }
});
