import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type JobEngine, LocalJobs } from '@servegym/jobs';
import { QueuedJobs, QueueWorker } from '@servegym/jobs/queue';
import { drawLengths, findProfile } from '@servegym/simulator';
import { startRedis } from '../../../../maintenance/test-servers/redis.ts';
import type { ServerProcess } from '../../../../maintenance/test-servers/server-process.ts';
import { TUNE_JOB_KINDS } from '../tune/measure-candidates.ts';
import { parseSlo } from '../tune/slo.ts';
import { splitTrace } from '../tune/traffic.ts';
import { planFleet } from './plan-fleet.ts';

const VERSION = 'a test';
const requests = 400;
const trace = {
  ...drawLengths({ requests, inputTokens: 800, outputTokens: 60, range: 0.5 }),
  arrivalMs: Float64Array.from({ length: requests }, (_, i) => 100 * i),
};
const profiles = [findProfile('a100-40gb-mistral-7b'), findProfile('h100-80gb-mistral-7b')];

const plan = async (jobs: JobEngine) => {
  const options = {
    ...{ slo: parseSlo('ttft_p99=1s,tpot_p99=50ms'), minQuality: 1, mostEngines: 4, seed: 3 },
  };
  const { wallS: _, ...found } = await planFleet(
    jobs,
    profiles,
    { trace, split: splitTrace(trace, requests) },
    options,
  );
  return found;
};

describe('planFleet', () => {
  let redis: ServerProcess;
  let worker: QueueWorker;
  let queue: JobEngine;
  const threads = new LocalJobs({ kinds: TUNE_JOB_KINDS, threads: 2 });
  before(async () => {
    redis = await startRedis();
    worker = await QueueWorker.start({ url: redis.url, version: VERSION, kinds: TUNE_JOB_KINDS, threads: 1 });
    queue = await QueuedJobs.connect({ url: redis.url, version: VERSION });
  });
  after(async () => {
    await Promise.all([threads.close(), queue.close()]);
    await worker.close(true);
    await redis.stop();
  });

  it('gives the same plans on threads and on workers of a queue on Redis', async () => {
    const found = await plan(threads);
    assert.ok(found.plans.length > 1 && found.plans[0].engines > 0);
    assert.deepEqual(await plan(queue), found);
  });
});
