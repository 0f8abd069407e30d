import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { runCommand } from './in-process.ts';

const guess = join(import.meta.dirname, '../../openenv/examples/guess/environment.ts');

describe('servegym validate in this process', () => {
  it('plays all environments without a server, and shows who answered', async () => {
    const { code, stdout, stderr } = await runCommand('validate', '--json');
    assert.deepEqual([code, stderr], [0, '']);
    const reports = JSON.parse(stdout);
    assert.deepEqual(
      reports.map(({ environment, passed }: { environment: string; passed: boolean }) => [
        environment,
        passed,
      ]),
      [
        ['llmserve', true],
        ['fleet', true],
        ['inferencegym', true],
        ['benchmark', true],
      ],
    );
    const { observation, state } = reports.at(-1);
    assert.ok(observation.pid > 0);
    assert.match(observation.session_hash, /^[0-9a-f]{16}$/);
    assert.match(observation.host_url, /^http:/);
    assert.deepEqual([state.step_count, state.session_hash], [3, observation.session_hash]);
  });

  it('plays an environment of a module, and fails with what is wrong', async () => {
    const sound = await runCommand('validate', '--env', guess);
    assert.equal(sound.code, 0, sound.stderr);
    assert.match(sound.stdout, /^guess 1$[\s\S]*^✓ replay [\s\S]*^passed: 7 of 7$/m);
    const refused = await runCommand('validate', '--env', guess, '--action', '{"number": 0}');
    assert.equal(refused.code, 1);
    assert.match(refused.stdout, /^✗ episode [\s\S]*number: .*1[\s\S]*^FAILED/m);
    assert.equal((await runCommand('validate', '--env', 'nothing')).code, 2);
  });
});
