import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { decodeStoppedRun } from '@servegym/agents';
import { type TrainingReport, trainOne } from './train-one.ts';

const task = 'static_workload';
const lessons = { teacher: 'heuristic', episodes: 4, minibatches: 8 };
const run = { environment: 'llmserve', task, algorithm: 'distill', steps: 2048, seed: 4, lessons } as const;

describe('a run of distill that stops', () => {
  let folder: string;
  let whole: string;
  let expected: TrainingReport;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'servegym-resume-'));
    whole = newFolder('whole');
    const { signal } = new AbortController();
    expected = await trainOne(run, whole, { threads: 1, signal });
  });
  after(() => rmSync(folder, { recursive: true }));

  for (const [round, lessonsGiven] of [
    [1, 1],
    [2, 3],
    [3, 4],
  ] as const) {
    it(`goes on after round ${round} of the lessons as if it had not stopped, bit for bit`, async (t) => {
      const [stopped, killed] = [newFolder(`stopped ${round}`), newFolder(`killed ${round}`)];
      const interrupt = new AbortController();
      const told = t.mock.method(console, 'error', (line: string) => {
        if (!line.startsWith(`lesson ${round}:`)) return;
        copyFileSync(join(stopped, 'checkpoint.safetensors'), join(killed, 'checkpoint.safetensors'));
        interrupt.abort();
      });
      const { signal } = interrupt;
      const first = await trainOne(run, stopped, { threads: 1, signal });
      assert.equal(first.steps, 0);
      const lines = told.mock.calls.map(({ arguments: [line] }) => String(line));
      assert.equal(lines.filter((line) => line.startsWith('lesson')).length, round);
      const note = `stopped after ${lessonsGiven} of 4 lessons; train --resume goes on`;
      assert.equal(lines.includes(note), lessonsGiven < 4);
      assert.ok(readFileSync(first.files.policy).length > 0);

      // Ctrl-C after the last lesson leaves a checkpoint of PPO, being killed there one of the lessons.
      for (const at of round < 3 ? [stopped] : [stopped, killed]) {
        const path = join(at, 'checkpoint.safetensors');
        const { run, stoppedAt: start } = decodeStoppedRun(readFileSync(path), path);
        const { signal } = new AbortController();
        const { files: _, ...figures } = await trainOne(run, at, { threads: 1, signal, start });
        assert.deepEqual(figures, { steps: expected.steps, final_return: expected.final_return });
        for (const file of ['policy.safetensors', 'policy.onnx', 'checkpoint.safetensors']) {
          assert.ok(readFileSync(join(at, file)).equals(readFileSync(join(whole, file))), `${file} of ${at}`);
        }
      }
    });
  }

  function newFolder(name: string): string {
    const path = join(folder, name);
    mkdirSync(path);
    return path;
  }
});
