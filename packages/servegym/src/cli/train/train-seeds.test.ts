import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { AGENTS } from '@servegym/agents';
import { llmserve, type ServeTask } from '@servegym/environments';
import { type JobEngine, LocalJobs } from '@servegym/jobs';
import { QueuedJobs, QueueWorker } from '@servegym/jobs/queue';
import { type RedisProcess, startRedis } from '../../../../../maintenance/test-servers/redis.ts';
import { loadTask } from '../arguments/scenario-options.ts';
import { JOB_KINDS } from '../jobs.ts';
import { type TrainingReport, trainOne, trainSeeds } from './train-one.ts';

const VERSION = 'a test';
const task = 'static_workload';

describe('trainings with several seeds', () => {
  const { engines, newFolder } = useTrainingEngines({ 'two threads': 2 });

  for (const [algorithm, steps, written] of [['ppo', 2048, ['policy.safetensors']]] as const) {
    it(`write what ${algorithm} with a seed alone writes, wherever they are done`, async () => {
      const alone = newFolder(`${algorithm} alone`);
      const { signal } = new AbortController();
      const run = { environment: 'llmserve', task, algorithm, steps } as const;
      const expected = await trainOne({ ...run, seed: 4 }, alone, { threads: 1, signal });

      for (const [name, jobs] of Object.entries(engines)) {
        const together = newFolder(`${algorithm} on ${name}`);
        const seeds = name === 'two threads' ? [3, 4] : [4];
        const reports = await trainSeeds(jobs, run, seeds, together);
        const { files, ...learned } = reports.at(-1)!;
        assert.deepEqual(learned, { seed: 4, ...figuresOf(expected) }, name);
        assert.deepEqual(Object.keys(files).sort(), Object.keys(expected.files).sort(), name);
        for (const file of [...written, 'learning-curve.svg']) {
          const [one, other] = [join(alone, file), join(together, 'seed-4', file)].map((at) =>
            readFileSync(at),
          );
          assert.ok(one!.equals(other!), `${file} on ${name}`);
        }
        assert.deepEqual(metricsOf(join(together, 'seed-4')), metricsOf(alone), name);
        if (seeds.length > 1) {
          const [three, four] = seeds.map((seed) => readFileSync(join(together, `seed-${seed}`, written[0])));
          assert.ok(!three!.equals(four!), 'another seed learns something else');
        }
      }
    });
  }
});

function figuresOf({ files: _, ...figures }: TrainingReport) {
  return figures;
}

/** Metrics that do not depend on the machine. */
function metricsOf(folder: string): object[] {
  const lines = readFileSync(join(folder, 'metrics.jsonl'), 'utf8').trimEnd().split('\n');
  return lines.map((line) => {
    const { wall_s: _, steps_per_s: __, ...figures } = JSON.parse(line);
    return figures;
  });
}

const ownTask = 'small_arrangement';
const { signal } = new AbortController();

const example = llmserve.tasks.find(
  await loadTask(join(import.meta.dirname, '../../../../environments/examples/fixed-arrangement.ts')),
)!;

/** The example with masked knobs, of so many windows. */
function ofWindows(windows: number): ServeTask {
  return llmserve.tasks.parse({ ...example, id: ownTask, windows }, 'a test');
}

describe('training on a task of one’s own', () => {
  before(() => {
    llmserve.tasks.add(ofWindows(8));
  });
  const { engines, newFolder } = useTrainingEngines({ 'a thread': 1 });

  for (const [algorithm, steps, written] of [['ppo', 2048, 'policy.safetensors']] as const) {
    it(`learns by ${algorithm} the same alone and as a job, wherever that is done`, async () => {
      const alone = newFolder(`${algorithm} alone`);
      const run = { environment: 'llmserve', task: ownTask, algorithm, steps } as const;
      await trainOne({ ...run, seed: 4 }, alone, { threads: 1, signal });
      const expected = readFileSync(join(alone, written));
      assert.equal(AGENTS.llmserve.loadPolicy(expected).taskId, ownTask);
      for (const [name, jobs] of Object.entries(engines)) {
        const together = newFolder(`${algorithm} on ${name}`);
        await trainSeeds(jobs, run, [4], together);
        assert.ok(readFileSync(join(together, 'seed-4', written)).equals(expected), name);
      }
    });
  }
});

/** Engines that do the trainings of a test, and folders for their files. */
export interface TrainingEngines {
  /** By name: threads of this process, and a queue on Redis with a worker. Empty before the tests begin. */
  readonly engines: Readonly<Record<string, JobEngine>>;
  /** Makes an empty folder. */
  readonly newFolder: (name: string) => string;
}

/**
 * Opens engines before the tests of a `describe` and closes them after.
 * @param threads of each engine of this process, by its name
 */
export function useTrainingEngines(threads: Readonly<Record<string, number>>): TrainingEngines {
  let folder: string;
  let redis: RedisProcess | undefined;
  let worker: QueueWorker | undefined;
  const engines: Record<string, JobEngine> = {};
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'servegym-training-'));
    redis = await startRedis();
    worker = await QueueWorker.start({ url: redis.url, version: VERSION, kinds: JOB_KINDS, threads: 1 });
    for (const [name, count] of Object.entries(threads)) {
      engines[name] = new LocalJobs({ kinds: JOB_KINDS, threads: count });
    }
    engines['a queue on Redis'] = await QueuedJobs.connect({ url: redis.url, version: VERSION });
  });
  after(async () => {
    await Promise.all(Object.values(engines).map((jobs) => jobs.close()));
    await worker?.close(true);
    await redis?.stop();
    rmSync(folder, { recursive: true });
  });
  return {
    engines,
    newFolder(name) {
      const path = join(folder, name);
      mkdirSync(path);
      return path;
    },
  };
}
