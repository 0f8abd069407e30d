import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type JobEngine, LocalJobs } from '@servegym/jobs';
import { QueuedJobs, QueueWorker } from '@servegym/jobs/queue';
import { findProfile } from '@servegym/profiles';
import { drawLengths, scaleRate, type Trace } from '@servegym/simulator';
import { type RedisProcess, startRedis } from '../../../../maintenance/test-servers/redis.ts';
import { TUNE_JOB_KINDS } from '../search/evaluator.ts';
import type { SearchSpace } from '../search/search-space.ts';
import { parseSlo } from '../search/slo.ts';
import { splitTrace } from '../search/traffic.ts';
import { PLAN_SPACE, planFleet } from './plan-fleet.ts';

const VERSION = 'a test';
const requests = 400;
const trace = {
  ...drawLengths({ requests, inputTokens: 800, outputTokens: 60, range: 0.5 }),
  arrivalMs: Float64Array.from({ length: requests }, (_, i) => 100 * i),
};
const profiles = [findProfile('a100-40gb-mistral-7b'), findProfile('h100-80gb-mistral-7b')];

const plan = async (
  jobs: JobEngine,
  rateScale = 1,
  of: Trace = trace,
  {
    allow = [] as string[],
    minQuality = 1,
    among = profiles,
    slo = 'ttft_p99=1s,tpot_p99=50ms',
    space = undefined as SearchSpace | undefined,
  } = {},
) => {
  const options = { ...{ slo: parseSlo(slo), minQuality, allow, mostEngines: 8, seed: 3, space } };
  const scaled = scaleRate(of, rateScale);
  const { wallS: _, ...found } = await planFleet(
    jobs,
    among,
    { trace: scaled, split: splitTrace(scaled, requests), refused: { requests: 0, longest: 0, limit: 1 } },
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

  it('ranks what rests on measurements first, and takes in what is allowed', async () => {
    const among = [findProfile('h100-80gb-llama-3-8b'), findProfile('l40s-48gb-llama-3-8b')];
    const asked = { minQuality: 0.97, among };
    const { plans, riskier } = await plan(threads, 20, trace, asked);
    assert.deepEqual(
      plans.map(({ restsOn, settings }) => [restsOn, settings.weights]),
      [['measured', 'FP16']],
    );
    assert.ok(riskier.some(({ usdPerHour }) => usdPerHour < plans[0].usdPerHour));
    for (const { assumes, restsOn, settings, profile, confidence, weightsAlike } of riskier) {
      const drafts = settings.speculationDepth > 0;
      assert.equal(assumes.includes('drafts'), drafts);
      assert.equal(assumes.includes('estimated'), profile.weights[settings.weights]!.status === 'estimated');
      assert.equal(assumes.includes(settings.weights.toLowerCase()), settings.weights !== 'FP16');
      assert.ok(drafts ? restsOn === 'assumed' && confidence.level === 'low' : restsOn !== 'assumed');
      if (profile === among[1]) assert.deepEqual(weightsAlike, settings.weights === 'FP8' ? ['INT8'] : []);
      if (profile === among[1]) assert.notEqual(settings.weights, 'INT8');
    }
    assert.ok(riskier.some(({ restsOn }) => restsOn === 'assumed'));
    for (const { profile, settings, sustainedRps, confidence } of [...plans, ...riskier]) {
      const { profileError: error, sustainedRps: interval } = confidence;
      assert.ok(interval.low <= sustainedRps * (1 - error) && interval.high >= sustainedRps * (1 + error));
      if (profile.weights[settings.weights]!.status === 'measured')
        assert.equal(error, Math.max(0.05, profile.fit!.heldOutWorstErrorPercent / 100));
    }
    const all = await plan(threads, 20, trace, {
      ...asked,
      allow: ['drafts', 'estimated', 'fp8', 'int8', 'int4'],
    });
    assert.deepEqual(all.riskier, []);
    assert.ok(all.plans[0].usdPerHour <= riskier[0].usdPerHour && all.plans.length > riskier.length);
  });

  it('names what misses the SLO by less than the error of its profile, and no more', async () => {
    const missing = async (slo: string) => plan(threads, 1, trace, { slo });
    const { nearest, near: none, notPlanned } = await missing('ttft_p99=1s,tpot_p99=1ms');
    assert.equal(notPlanned[0].reason, 'no settings meet the SLO');
    assert.deepEqual(none, []);
    const limit = 0.99 * nearest!.valuesMs.tpot_p99;
    const { plans, near } = await missing(`ttft_p99=1s,tpot_p99=${limit.toFixed(3)}ms`);
    assert.deepEqual(plans, []);
    assert.equal(near[0].profile.name, nearest!.profile.name);
    assert.ok(near[0].chance > 0.05 && near[0].chance < 0.5, `${near[0].chance}`);
    assert.ok(near[0].tpotP99Ms > limit && near[0].tpotP99Ms < 1.1 * limit);
  });

  it('ranks by the bill of an autoscaler: a fleet that is not the cheapest without one may come first', async () => {
    // A busy minute, then half an hour of little.
    const at = (i: number) => (i < 300 ? 200 * i : 60_000 + 18_000 * (i - 300));
    const busy = { ...trace, arrivalMs: trace.arrivalMs.map((_, i) => at(i)) };
    const among = profiles.map((each, i) => ({ ...each, gpu: { ...each.gpu, usdPerHour: [1.3, 2][i] } }));
    const asked = { among, space: { ...PLAN_SPACE, split: [false] as const } };
    const fixed = await plan(threads, 4, busy, asked);
    const autoscaler = [1, 4, 16].map((target) => ({ requests_in_flight: target, down_seconds: 0 }));
    const scaled = await plan(threads, 4, busy, { ...asked, space: { ...asked.space, autoscaler } });
    assert.deepEqual([fixed.plans[0].profile, fixed.plans[0].usdPerHour], [among[1], 2]);
    const [first, second] = scaled.plans;
    assert.equal(first.profile, among[0]);
    assert.ok(first.usdPerHour > 2 && first.autoscaler!.usdPerHour < 2, JSON.stringify(first.autoscaler));
    assert.deepEqual([second.profile, second.autoscaler], [among[1], undefined]);
  });

  it('gives the same plans on threads and on workers of a queue on Redis', async () => {
    const asked = { space: { ...PLAN_SPACE, autoscaler: [{ requests_in_flight: 30, down_seconds: 0 }] } };
    const found = await plan(threads, 6, trace, asked);
    assert.ok(found.plans.length > 1 && found.plans.some(({ autoscaler }) => autoscaler !== undefined));
    assert.deepEqual(await plan(queue, 6, trace, asked), found);
  });
});
