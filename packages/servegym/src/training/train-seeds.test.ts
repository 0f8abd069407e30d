import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type JobEngine, LocalJobs, QueuedJobs, QueueWorker } from '@servegym/agents/jobs';
import { startRedis } from '../../../../workshop/test-servers/redis.ts';
import type { ServerProcess } from '../../../../workshop/test-servers/server-process.ts';
import { JOB_KINDS } from '../jobs/job-kinds.ts';
import { searchRegimes } from './search-regimes.ts';
import { trainDistilled } from './train-distilled.ts';
import { trainSeeds } from './train-seeds.ts';
import type { TrainingPlan, TrainingReport } from './training-plan.ts';

const VERSION = 'a test';
const task = 'static_workload';
const lessons = { teacher: 'heuristic', episodes: 3, minibatches: 8 };

describe('trainings with several seeds', () => {
  let folder: string;
  let redis: ServerProcess;
  let worker: QueueWorker;
  let engines: Readonly<Record<string, JobEngine>> = {};
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'servegym-seeds-'));
    redis = await startRedis();
    worker = await QueueWorker.start({ url: redis.url, version: VERSION, kinds: JOB_KINDS, threads: 1 });
    engines = {
      'one thread': new LocalJobs({ kinds: JOB_KINDS, threads: 1 }),
      'two threads': new LocalJobs({ kinds: JOB_KINDS, threads: 2 }),
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
    ['cem', 1, searchRegimes, ['policy.json']],
    [
      ...(['distill', 2048, (plan: TrainingPlan) => trainDistilled(plan, lessons)] as const),
      ['policy.safetensors', 'policy.onnx', 'checkpoint.safetensors'],
    ],
  ] as const) {
    it(`write what ${algorithm} with a seed alone writes, wherever they are done`, async () => {
      const alone = newFolder(`${algorithm} alone`);
      const { signal } = new AbortController();
      const expected = await trainAlone({ task, steps, seed: 4, threads: 1, folder: alone, signal });

      for (const [name, jobs] of Object.entries(engines)) {
        const together = newFolder(`${algorithm} on ${name}`);
        const seeds = name === 'two threads' ? [3, 4] : [4];
        const reports = await trainSeeds(jobs, {
          ...{ environment: 'llmserve', task, algorithm, steps, seeds, lessons, scenario: {} },
          folder: together,
        });
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

  function newFolder(name: string): string {
    const path = join(folder, name);
    mkdirSync(path);
    return path;
  }
});

function figuresOf({ files: _, ...figures }: TrainingReport) {
  return figures;
}

/** What does not depend on the machine. */
function metricsOf(folder: string): object[] {
  const lines = readFileSync(join(folder, 'metrics.jsonl'), 'utf8').trimEnd().split('\n');
  return lines.map((line) => {
    const { wall_s: _, steps_per_s: __, ...figures } = JSON.parse(line);
    return figures;
  });
}
