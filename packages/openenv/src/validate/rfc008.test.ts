import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, it } from 'node:test';
import type { Criterion } from './check.ts';
import CRITERIA from './criteria.json' with { type: 'json' };
import CHECKS from './rfc008.json' with { type: 'json' };
import { rfc008Checks } from './validate-server.ts';

const python =
  process.env.SERVEGYM_PYTHON ?? assert.fail('SERVEGYM_PYTHON is not set. Run the tests with `npm test`.');
const criterion = (id: string, passed: boolean | null): Criterion => {
  return { id, description: '', required: true, passed };
};

describe('the checks of RFC 008', () => {
  it("are the local ones of OpenEnv's own policy", () => {
    const program =
      'from importlib.resources import files; print(files("openenv.validation").joinpath("policies/severity-v2.json").read_text())';
    const policy: { entries: { check_id: string; lane: string }[] } = JSON.parse(
      execFileSync(python, ['-c', program], { encoding: 'utf8' }),
    );
    const local = policy.entries.filter(({ lane }) => lane === 'local').map(({ check_id }) => check_id);
    assert.deepEqual(Object.keys(CHECKS).sort(), local.sort());
  });

  it('are judged by criteria that there are', () => {
    for (const id of Object.values(CHECKS).filter(Array.isArray).flat()) assert.ok(id in CRITERIA, id);
  });

  it('pass where all criteria are met, fail where one is not, and are skipped where none was judged', () => {
    const checks = rfc008Checks([
      ...[criterion('session_isolation', true), criterion('reset_again', false)],
      ...[criterion('seed_determinism', true), criterion('seed_control', null)],
    ]);
    const of = (id: string) => checks.find(({ check_id }) => check_id === id);
    assert.deepEqual(
      ['runtime.episode_isolation', 'runtime.episode_determinism', 'runtime.seed_control'].map(
        (id) => of(id)?.status,
      ),
      ['fail', 'pass', 'skip'],
    );
    assert.deepEqual(of('runtime.episode_determinism')?.judged_by, ['seed_determinism']);
    assert.equal(of('semantic.oracle_max')?.needs, 'the oracle');
  });
});
