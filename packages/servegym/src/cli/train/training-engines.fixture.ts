import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { type JobEngine, LocalJobs } from '@servegym/jobs';
import { QueuedJobs, QueueWorker } from '@servegym/jobs/queue';
import { type RedisProcess, startRedis } from '../../../../../maintenance/test-servers/redis.ts';
import { JOB_KINDS } from '../jobs.ts';

const VERSION = 'a test';

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
