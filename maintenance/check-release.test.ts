import assert from 'node:assert/strict';
import { it } from 'node:test';
import { runScript } from './run-script.fixture.ts';

it('check-release passes on this checkout, without the image', async () => {
  const { code, stdout, stderr } = await runScript(
    'check-release.ts',
    ...['--skip-docker', '--json'],
    // Start-up time is measured on a machine that does nothing else.
    ...['--healthy-within', '600'],
  );
  assert.equal(stderr, '');
  const { passed, checks } = JSON.parse(stdout) as {
    passed: boolean;
    checks: readonly { id: string; passed: boolean | null; details: string }[];
  };
  assert.deepEqual(
    checks.filter((check) => check.passed === false),
    [],
  );
  assert.deepEqual(
    checks.filter((check) => check.passed === null).map(({ id }) => id),
    ['image'],
  );
  assert.deepEqual([passed, code], [true, 0]);
});
