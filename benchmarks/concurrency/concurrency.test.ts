import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type ServeProcess, startServe } from '../../maintenance/test-servers/servegym.ts';
import { temporaryFolder } from '../../maintenance/test-servers/temporary-folder.ts';
import concurrency, { openFileLimit, requestGrid, requireOpenFiles } from '../cases/concurrency.ts';
import { runCase } from '../harness.ts';
import { concurrencyPlotSvg } from './concurrency-plot.ts';
import type { BatchResult } from './session-batch.ts';

describe('requestGrid', () => {
  it('takes numbers, and ranges that double and keep their end', () => {
    assert.deepEqual(requestGrid('7'), [7]);
    assert.deepEqual(requestGrid('1, 8,64'), [1, 8, 64]);
    assert.deepEqual(requestGrid('1..16'), [1, 2, 4, 8, 16]);
    assert.deepEqual(requestGrid('1..1000,16384'), [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 16_384]);
    assert.deepEqual(requestGrid('5..5'), [5]);
  });

  it('refuses what it cannot run', () => {
    for (const given of ['', '0', '16385', '1.5', '-1', '1,,2', 'all', '1..99999', '8..1'])
      assert.throws(() => requestGrid(given), /^Error: expected/, given);
  });
});

it('the limit of open files allows what fits, and is told with what to do', () => {
  assert.ok(openFileLimit()! > 0);
  requireOpenFiles(100, 164);
  requireOpenFiles(1e9, null);
  assert.throws(() => requireOpenFiles(2048, 1024), {
    message:
      '2048 sessions need 2112 open files, but this process may have 1024. Raise the limit with `ulimit -n 2112`, or ask for at most 960 sessions.',
  });
});

describe('concurrency', () => {
  let servers: ServeProcess[] = [];
  const folder = temporaryFolder();
  before(async () => {
    servers = await Promise.all([startServe('--env', 'benchmark'), startServe('--env', 'benchmark')]);
  });
  after(() => Promise.all(servers.map((server) => server.stop())));

  it('measures batches of sessions on several servers, and draws them', async () => {
    const plot = join(folder, 'plot.svg');
    const url = servers.map((server) => server.url).join(',');
    const lines: string[] = [];
    const args = ['--url', url, '--requests', '1..4,10', '--wait', '0', '--steps', '2', '--plot', plot];
    const rows = await runCase(concurrency, args, (line) => lines.push(line));
    assert.deepEqual(
      rows.map(({ sessions }) => sessions),
      [1, 2, 4, 10],
    );
    assert.ok(lines.includes('\nlargest batch with at least 95 % success: 10'));
    const last = rows.at(-1)!;
    assert.deepEqual([last['success, %'], last.failures, last.processes], [100, '', 2]);
    assert.ok(Number(last['steps/s']) > Number(last['requests/s']));
    assert.match(readFileSync(plot, 'utf8'), /^<svg .*sessions at once/s);
  });
});

describe('concurrencyPlotSvg', () => {
  const times = (p50: number) => ({ p50, p99: 2 * p50, max: 3 * p50 });
  const batch = (sessions: number, change: Partial<BatchResult> = {}): BatchResult => ({
    sessions,
    succeeded: sessions,
    wallS: 2,
    launchS: 0.5,
    requestsPerS: sessions / 2,
    stepsPerS: sessions / 2,
    total: times(1000),
    connect: times(5),
    reset: times(1),
    step: times(900),
    failures: {},
    answeredBy: {},
    loadCpu: 0.3,
    ...change,
  });
  const nobody = { succeeded: 0, requestsPerS: 0, stepsPerS: 0, total: null };

  it('draws a point for each figure that there is', () => {
    const svg = concurrencyPlotSvg('a < b', [batch(64), batch(1024), batch(2048, nobody)]);
    assert.equal((svg.match(/<circle [^>]* r="3"/g) ?? []).length, 2 + 2 + 3 + 3);
    assert.match(svg, /a &lt; b/);
    for (const sessions of [64, 1024, 2048]) assert.match(svg, new RegExp(`>${sessions}</text>`));
  });

  it('draws a single batch, and one in which nothing succeeded', () => {
    for (const change of [{}, nobody])
      assert.doesNotMatch(concurrencyPlotSvg('one', [batch(1, change)]), /NaN|Infinity|undefined/);
  });
});
