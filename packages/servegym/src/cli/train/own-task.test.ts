import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { AGENTS, decodeStoppedRun } from '@servegym/agents';
import { llmserve, type ServeTask } from '@servegym/environments';
import { loadTask } from '../arguments/scenario-options.ts';
import { trainOne, trainSeeds } from './train-one.ts';
import { useTrainingEngines } from './training-engines.fixture.ts';

const task = 'small_arrangement';
const lessons = { teacher: 'heuristic', episodes: 3, minibatches: 8 };
const { signal } = new AbortController();

const example = llmserve.tasks.find(
  await loadTask(join(import.meta.dirname, '../../../../environments/examples/fixed-arrangement.ts')),
)!;

/** The example with masked knobs, of so many windows. */
function ofWindows(windows: number): ServeTask {
  return llmserve.tasks.parse({ ...example, id: task, windows }, 'a test');
}

/** Reads a checkpoint. */
function stoppedIn(folder: string) {
  const path = join(folder, 'checkpoint.safetensors');
  return decodeStoppedRun(readFileSync(path), path);
}

describe('training on a task of one’s own', () => {
  before(() => {
    llmserve.tasks.add(ofWindows(8));
  });
  const { engines, newFolder } = useTrainingEngines({ 'a thread': 1 });

  for (const [algorithm, steps, written] of [
    ['ppo', 2048, 'policy.safetensors'],
    ['distill', 2048, 'policy.safetensors'],
    ['cem', 1, 'policy.json'],
  ] as const) {
    it(`learns by ${algorithm} the same alone and as a job, wherever that is done`, async () => {
      const alone = newFolder(`${algorithm} alone`);
      const run = { environment: 'llmserve', task, algorithm, steps, lessons } as const;
      await trainOne({ ...run, seed: 4 }, alone, { threads: 1, signal });
      const expected = readFileSync(join(alone, written));
      assert.equal(AGENTS.llmserve.loadPolicy(expected).taskId, task);
      for (const [name, jobs] of Object.entries(engines)) {
        const together = newFolder(`${algorithm} on ${name}`);
        await trainSeeds(jobs, run, [4], together);
        assert.ok(readFileSync(join(together, 'seed-4', written)).equals(expected), name);
      }
    });
  }

  it('goes on with the task that the run began with, whatever its file says by then, bit for bit', async (t) => {
    const [whole, stopped] = [newFolder('whole'), newFolder('stopped')];
    const plan = {
      environment: 'llmserve',
      task,
      algorithm: 'distill',
      steps: 2048,
      seed: 5,
      lessons,
    } as const;
    await trainOne(plan, whole, { threads: 1, signal });
    const interrupt = new AbortController();
    t.mock.method(console, 'error', () => interrupt.abort());
    const first = await trainOne(plan, stopped, { threads: 1, signal: interrupt.signal });
    assert.equal(first.steps, 0);

    llmserve.tasks.add(ofWindows(9));
    const { run, stoppedAt } = stoppedIn(stopped);
    assert.ok('shown' in stoppedAt && stoppedAt.shown.length === 1);
    assert.equal(llmserve.tasks.find(task)?.windows, 8);
    await trainOne(run, stopped, { threads: 1, signal, start: stoppedAt });
    for (const file of ['policy.safetensors', 'policy.onnx', 'checkpoint.safetensors']) {
      assert.ok(readFileSync(join(stopped, file)).equals(readFileSync(join(whole, file))), file);
    }
    assert.equal(stoppedIn(whole).run.task, task);
  });
});
