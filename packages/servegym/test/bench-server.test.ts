import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { runServegym, type ServeProcess, startServe } from '../../../maintenance/test-servers/servegym.ts';

describe('servegym bench server', () => {
  let servers: ServeProcess[] = [];
  const folder = mkdtempSync(join(tmpdir(), 'servegym-bench-'));
  before(async () => {
    servers = await Promise.all([startServe('--env', 'benchmark'), startServe('--env', 'benchmark')]);
  });
  after(async () => {
    await Promise.all(servers.map((server) => server.stop()));
    rmSync(folder, { recursive: true });
  });
  const urls = () => servers.flatMap(({ url }) => ['--url', url]);

  it('measures batches of sessions on several servers, and draws them', async () => {
    const plot = join(folder, 'plot.svg');
    const args = ['--requests', '1..4,10', '--wait', '0', '--steps', '2', '--plot', plot, '--json'];
    const { code, stdout, stderr } = await runServegym('bench', 'server', ...urls(), ...args);
    assert.deepEqual([code, stderr], [0, '']);
    const report = JSON.parse(stdout);
    assert.deepEqual(
      report.batches.map((batch: { sessions: number }) => batch.sessions),
      [1, 2, 4, 10],
    );
    assert.equal(report.largest_with_95_percent_success, 10);
    const last = report.batches.at(-1);
    assert.deepEqual([last.success_rate, last.failures], [1, {}]);
    assert.deepEqual(Object.values(last.answered_by), [5, 5]);
    assert.ok(last.steps_per_s > last.requests_per_s);
    assert.match(readFileSync(plot, 'utf8'), /^<svg .*sessions at once/s);
  });

  it('prints a table', async () => {
    const { code, stdout } = await runServegym(
      'bench',
      'server',
      ...urls(),
      '--requests',
      '3',
      '--wait',
      '0',
    );
    assert.equal(code, 0);
    assert.match(stdout, /^3 +100\.0 %/m);
  });

  it('says what is wrong with what it was asked for', async () => {
    const [{ url }] = servers as [ServeProcess];
    for (const [args, message] of [
      [[], /required option '--url/],
      [['--url', 'localhost:8000'], /Expected an address that begins with http/],
      [['--url', url, '--requests', '20000'], /from 1 to 16384/],
      [['--url', url, '--wait', '-1'], /Expected a number from 0 to 3600/],
      [['--url', url, '--action', '[1]'], /Expected a JSON object/],
      [['--url', url, '--action', '{}', '--wait', '1'], /cannot be used with/],
      [['--url', 'http://127.0.0.1:9'], /Is an OpenEnv server running there\?/],
    ] as const) {
      const { code, stderr } = await runServegym('bench', 'server', ...args);
      assert.equal(code, 2, stderr);
      assert.match(stderr, message);
    }
  });
});
