import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { loadTrainedPolicy, serveLearningTask } from '@servegym/agents';
import { addServeTask, findServeTask, parseServeTask, type ServeTask } from '@servegym/environments';
import { loadTask } from '../arguments/load-task.ts';
import { readCheckpoint } from './checkpoint-file.ts';
import { resumeTraining } from './resume-training.ts';
import { searchRegimes } from './search-regimes.ts';
import { trainDistilled } from './train-distilled.ts';
import { trainNetwork } from './train-network.ts';
import { trainSeeds } from './train-seeds.ts';
import { useTrainingEngines } from './training-engines.fixture.ts';
import type { TrainingPlan } from './training-plan.ts';

const task = 'small_arrangement';
const lessons = { teacher: 'heuristic', episodes: 3, minibatches: 8 };
const { signal } = new AbortController();

const example = await loadTask(
  join(import.meta.dirname, '../../../../environments/examples/fixed-arrangement.ts'),
);

/** The example with masked knobs, of so many windows. */
function ofWindows(windows: number): ServeTask {
  return parseServeTask({ ...example, id: task, windows }, 'a test');
}

const trainPpo = (plan: TrainingPlan) =>
  trainNetwork({ ...plan, algorithm: 'ppo', learningTask: serveLearningTask(task) });

describe('training on a task of one’s own', () => {
  before(() => {
    addServeTask(ofWindows(8));
  });
  const { engines, newFolder } = useTrainingEngines({ 'a thread': 1 });

  for (const [algorithm, steps, trainAlone, written] of [
    ['ppo', 2048, trainPpo, 'policy.safetensors'],
    [
      ...(['distill', 2048, (plan: TrainingPlan) => trainDistilled(plan, lessons)] as const),
      'policy.safetensors',
    ],
    ['cem', 1, searchRegimes, 'policy.json'],
  ] as const) {
    it(`learns by ${algorithm} the same alone and as a job, wherever that is done`, async () => {
      const alone = newFolder(`${algorithm} alone`);
      await trainAlone({ task, steps, seed: 4, threads: 1, folder: alone, signal });
      const expected = readFileSync(join(alone, written));
      assert.equal(loadTrainedPolicy(expected).taskId, task);
      for (const [name, jobs] of Object.entries(engines)) {
        const together = newFolder(`${algorithm} on ${name}`);
        await trainSeeds(jobs, {
          ...{ environment: 'llmserve', task, algorithm, steps, seeds: [4], lessons, scenario: {} },
          folder: together,
        });
        assert.ok(readFileSync(join(together, 'seed-4', written)).equals(expected), name);
      }
    });
  }

  it('goes on with the task that the run began with, whatever its file says by then, bit for bit', async (t) => {
    const [whole, stopped] = [newFolder('whole'), newFolder('stopped')];
    const plan = { task, steps: 2048, seed: 5, threads: 1 };
    await trainDistilled({ ...plan, folder: whole, signal }, lessons);
    const interrupt = new AbortController();
    t.mock.method(console, 'error', () => interrupt.abort());
    const first = await trainDistilled({ ...plan, folder: stopped, signal: interrupt.signal }, lessons);
    assert.equal(first.steps, 0);

    addServeTask(ofWindows(9));
    const run = await readCheckpoint(join(stopped, 'checkpoint.safetensors'));
    assert.ok('shown' in run && run.shown.length === 1);
    assert.equal(findServeTask(task)?.windows, 8);
    await resumeTraining(run, { threads: 1, folder: stopped, signal });
    for (const file of ['policy.safetensors', 'policy.onnx', 'checkpoint.safetensors']) {
      assert.ok(readFileSync(join(stopped, file)).equals(readFileSync(join(whole, file))), file);
    }
    const { learningTask } = await readCheckpoint(join(whole, 'checkpoint.safetensors'));
    assert.equal(learningTask.taskId, task);
  });
});
