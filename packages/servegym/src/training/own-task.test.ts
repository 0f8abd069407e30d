import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { loadTrainedPolicy, serveLearningTask } from '@servegym/agents';
import { type JobEngine, LocalJobs, QueuedJobs, QueueWorker } from '@servegym/agents/jobs';
import { addServeTask, findServeTask, parseServeTask, type ServeTask } from '@servegym/environments';
import { startRedis } from '../../../../workshop/test-servers/redis.ts';
import type { ServerProcess } from '../../../../workshop/test-servers/server-process.ts';
import { JOB_KINDS } from '../jobs/job-kinds.ts';
import { loadTask } from '../task-files/load-task.ts';
import { readCheckpoint } from './checkpoint-file.ts';
import { resumeTraining } from './resume-training.ts';
import { searchRegimes } from './search-regimes.ts';
import { trainDistilled } from './train-distilled.ts';
import { trainNetwork } from './train-network.ts';
import { trainSeeds } from './train-seeds.ts';
import type { TrainingPlan } from './training-plan.ts';

const VERSION = 'a test';
const task = 'small_arrangement';
const lessons = { teacher: 'heuristic', episodes: 3, minibatches: 8 };
const { signal } = new AbortController();

const example = await loadTask(
  join(import.meta.dirname, '../../../environments/examples/fixed-arrangement.ts'),
);

/** The example with masked knobs, of so many windows. */
function ofWindows(windows: number): ServeTask {
  return parseServeTask({ ...example, id: task, windows }, 'a test');
}

const trainPpo = (plan: TrainingPlan) =>
  trainNetwork({ ...plan, algorithm: 'ppo', learningTask: serveLearningTask(task) });

describe('training on a task of one’s own', () => {
  let folder: string;
  let redis: ServerProcess;
  let worker: QueueWorker;
  let engines: Readonly<Record<string, JobEngine>> = {};
  before(async () => {
    addServeTask(ofWindows(8));
    folder = mkdtempSync(join(tmpdir(), 'servegym-own-task-'));
    redis = await startRedis();
    worker = await QueueWorker.start({ url: redis.url, version: VERSION, kinds: JOB_KINDS, threads: 1 });
    engines = {
      'a thread': new LocalJobs({ kinds: JOB_KINDS, threads: 1 }),
      'a queue on Redis': await QueuedJobs.connect({ url: redis.url, version: VERSION }),
    };
  });
  after(async () => {
    await Promise.all(Object.values(engines).map((jobs) => jobs.close()));
    await worker?.close(true);
    await redis?.stop();
    rmSync(folder, { recursive: true });
  });

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

  function newFolder(name: string): string {
    const path = join(folder, name);
    mkdirSync(path);
    return path;
  }
});
