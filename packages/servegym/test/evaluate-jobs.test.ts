import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { runServegym } from './serve-process.ts';

const folder = mkdtempSync(join(tmpdir(), 'servegym-evaluate-jobs-'));
after(() => rmSync(folder, { recursive: true, force: true }));

describe('an evaluation on several threads', () => {
  it('comes to the same as on one, under a trace of one’s own', async () => {
    const trace = join(folder, 'mine.csv');
    const rows = Array.from(
      { length: 3000 },
      (_, i) => `${i / 4},${50 + ((i * 37) % 900)},${10 + ((i * 13) % 150)}`,
    );
    writeFileSync(trace, `arrival,input,output\n${rows.join('\n')}\n`);
    const asked = ['--agent', 'heuristic', '--task', 'bursty_workload', '--trace', trace, '--episodes', '3'];
    const [one, two] = await Promise.all(
      ['1', '2'].map(async (threads) => {
        const { code, stdout, stderr } = await runServegym(
          'evaluate',
          '--json',
          ...asked,
          '--threads',
          threads,
        );
        assert.equal(code, 0, stderr);
        return JSON.parse(stdout);
      }),
    );
    assert.deepEqual(one.tasks.bursty_workload.runs, two.tasks.bursty_workload.runs);
    assert.equal(one.tasks.bursty_workload.runs.length, 3);
  });
});
