import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { runScript } from './run-script.fixture.ts';

describe('maintenance/bench-agents.ts', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'servegym-bench-agents-'));
  });
  after(() => rmSync(folder, { recursive: true }));

  it('trains, plays and reports, and goes on with what it has trained', async () => {
    const page = join(folder, 'page.md');
    const args = [
      ...['--agents', 'default,heuristic,ppo', '--task', 'static_workload'],
      ...['--episodes', '3', '--training-seeds', '2', '--steps', '2048', '--no-shifted'],
      ...['--threads', '2', '--cache', folder, '--out', page, '--json'],
    ];
    const { code, stdout, stderr } = await runScript('bench-agents.ts', ...args);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /ppo on static_workload: trained 2 of 2/);
    const { cells } = JSON.parse(stdout);
    assert.deepEqual(
      cells.map(({ agent, split, runs }: { agent: string; split: string; runs: number[] }) => [
        agent,
        split,
        runs.length,
      ]),
      [
        ['default', 'test', 1],
        ['heuristic', 'test', 1],
        ['ppo', 'test', 2],
      ],
    );
    assert.ok(Math.abs(cells[0].score.mean - 0.2) < 1e-9);
    assert.match(readFileSync(page, 'utf8'), /^# Benchmarks of the agents\n/);
    assert.deepEqual(JSON.parse(readFileSync(join(folder, 'page.json'), 'utf8')), JSON.parse(stdout));

    const again = await runScript('bench-agents.ts', ...args);
    assert.equal(again.stdout, stdout);
    assert.doesNotMatch(again.stderr, /trained/);
  });

  it('ends with exit code 2 for an agent that it does not know', async () => {
    const { code, stderr } = await runScript('bench-agents.ts', '--agents', 'default,nobody');
    assert.match(stderr, /Expected a policy named one of random, .*, got "nobody"/);
    assert.equal(code, 2);
  });
});
