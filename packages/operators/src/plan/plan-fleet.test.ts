import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type JobEngine, LocalJobs } from '@servegym/jobs';
import { QueuedJobs, QueueWorker } from '@servegym/jobs/queue';
import { findProfile } from '@servegym/profiles';
import { drawLengths, scaleRate, type Trace } from '@servegym/simulator';
import { type RedisProcess, startRedis } from '../../../../maintenance/test-servers/redis.ts';
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

const plan = async (jobs: JobEngine, rateScale = 1, of: Trace = trace) => {
  const options = {
    ...{ slo: parseSlo('ttft_p99=1s,tpot_p99=50ms'), minQuality: 1, mostEngines: 8, seed: 3 },
  };
  const scaled = scaleRate(of, rateScale);
  const { wallS: _, ...found } = await planFleet(
    jobs,
    profiles,
    { trace: scaled, split: splitTrace(scaled, requests) },
    options,
  );
  return found;
};

describe('planFleet', () => {
  let redis: RedisProcess;
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

  it('mixes two kinds of GPU: beside each other, and one for prefill', async () => {
    const { plans, mixedFleetsTried } = await plan(threads, 12);
    const mixed = plans.filter(({ pools }) => pools.length === 2 && pools[0].profile !== pools[1].profile);
    assert.deepEqual(mixed.map(({ pools }) => pools.map(({ role }) => role).join(' ')).sort(), [
      'all all',
      'prefill decode',
    ]);
    assert.ok(mixedFleetsTried >= 6);
    // Three engines of one kind are more than are needed, and two too few.
    assert.ok(mixed.includes(plans[0]));
    for (const { pools, engines, gpus, usdPerHour, ...fleet } of mixed) {
      assert.equal(engines, pools[0].engines + pools[1].engines);
      assert.equal(gpus, engines);
      const usd = pools.map((pool) => pool.engines * pool.profile.gpu.usdPerHour);
      assert.ok(Math.abs(usdPerHour - usd[0] - usd[1]) < 1e-9);
      assert.ok(0 < fleet.lowerBoundUsdPerHour && fleet.lowerBoundUsdPerHour < fleet.autoscaledUsdPerHour);
      assert.ok(fleet.autoscaledUsdPerHour <= usdPerHour + 1e-9);
      assert.ok(fleet.ttftP99Ms <= 1000 && fleet.tpotP99Ms <= 50);
      assert.equal(fleet.commands.length, 4);
    }
  });

  it('routes by prefix where that takes fewer engines or time', async () => {
    const ids = Float64Array.from({ length: requests }, (_, i) => (i * i) % 23);
    const offsets = Int32Array.from({ length: requests + 1 }, (_, i) => i);
    const prefixed = { ...trace, prefixBlocks: { blockTokens: 640, ids, offsets } };
    const { plans } = await plan(threads, 12, prefixed);
    const routed = plans.filter(({ router }) => router === 'prefix_aware');
    assert.ok(routed.length > 0);
    for (const { commands } of routed) assert.match(commands[0].notExpressed.join(), /prefixaware/);
    assert.ok((await plan(threads, 12)).plans.every(({ router }) => router === 'least_loaded'));
  });

  it('gives the same plans on threads and on workers of a queue on Redis', async () => {
    const found = await plan(threads);
    assert.ok(found.plans.length > 1 && found.plans[0].engines > 0);
    assert.deepEqual(await plan(queue), found);
  });
});
