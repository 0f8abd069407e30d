import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findProfile } from '@servegym/profiles';
import { type EngineProfile, RandomStream, scaleRate, simulateTrace, type Trace } from '@servegym/simulator';
import { percentileOfSorted } from '@servegym/simulator/statistics';
import { type Candidate, vllmDefaults } from './candidate.ts';
import { goodShare, measureLoad, serveTraffic, sloUse } from './load-point.ts';
import { pointAt } from './measured.fixture.ts';
import { parseSlo } from './slo.ts';

const profile = findProfile('a100-40gb-llama-3-8b');
const { split: _, priority: __, ...config } = vllmDefaults(profile);
const REQUESTS = 600;
const LOAD = 3;
const SEED = 5;

/** A Poisson process of 4 requests/s; every tenth request asks for one token. */
function poissonTrace(): Trace {
  const random = new RandomStream(1, 'trace');
  const arrivalMs = new Float64Array(REQUESTS);
  for (let i = 1; i < REQUESTS; i += 1) arrivalMs[i] = arrivalMs[i - 1] + random.exponential(250);
  return {
    source: 'poisson.csv',
    arrivalMs,
    inputTokens: Int32Array.from({ length: REQUESTS }, () => random.integer(50, 1500)),
    outputTokens: Int32Array.from({ length: REQUESTS }, (_, i) =>
      i % 10 === 0 ? 1 : random.integer(20, 300),
    ),
  };
}

const trace = poissonTrace();
const priorities = Uint8Array.from({ length: REQUESTS }, (_, i) => (i % 3 === 0 ? 0 : 1));
const blockStarts = [0, 250, REQUESTS];
const slo = parseSlo('ttft_p90=120ms,tpot_p50=30ms,e2e_mean=4s,class0_ttft_p50=60ms');

/** The same requests, served once more by the simulator itself. */
function latencies() {
  const run = simulateTrace(scaleRate(trace, LOAD), {
    ...{ profile, seed: SEED, priorities, schedulingPolicy: 'fcfs', ...config },
  });
  assert.equal(run.completed, REQUESTS);
  return Array.from(run.ids, (id, i) => ({
    ...{ id, block: id < 250 ? 0 : 1, ttft: run.ttftMs[i], tpot: run.tpotMs[i], e2e: run.e2eMs[i] },
  }));
}

describe('a load of requests in flight', () => {
  it('keeps as many in flight as the load says, and tells what is served', () => {
    const traffic = { trace, blockStarts, concurrency: 6 };
    const { rate, values } = measureLoad(profile, vllmDefaults(profile), traffic, parseSlo('e2e_p50=4s'), {
      ...{ load: 2, seed: SEED },
    });
    const run = simulateTrace(trace, { ...{ profile, seed: SEED, ...config }, concurrency: 12 });
    assert.equal(rate, (1000 * REQUESTS) / run.simulatedMs);
    assert.equal(values[0], percentileOfSorted(run.e2eMs.toSorted(), 50));
  });
});

describe('settings that are searched only where they are named', () => {
  const defaults = vllmDefaults(profile);
  const latencies = (candidate: Candidate, of = profile) => {
    const { ttftMs, e2eMs } = serveTraffic(of, candidate, { trace, blockStarts }, { load: 6, seed: SEED });
    return [...ttftMs, ...e2eMs];
  };
  const withEngine = (engine: Partial<EngineProfile['engine']>): EngineProfile => ({
    ...profile,
    engine: { ...profile.engine, ...engine },
  });

  it('cap what runs at once as fewer sequences do', () => {
    const capped = latencies({ ...defaults, maxNumActiveSeqs: 8 });
    assert.deepEqual(capped, latencies({ ...defaults, maxNumSeqs: 8 }));
    assert.notDeepEqual(capped, latencies(defaults));
  });

  it('cut long prompts as the flags of the engine do, in the place of these', () => {
    const flags = { longPrefillTokenThreshold: 64, longPrefillTokenThresholdAdaptive: true };
    const started = withEngine(flags);
    const cut = latencies({ ...defaults, ...flags });
    assert.deepEqual(cut, latencies(vllmDefaults(started), started));
    assert.notDeepEqual(cut, latencies({ ...defaults, longPrefillTokenThreshold: 64 }));
    assert.deepEqual(latencies(defaults, started), latencies(defaults));
  });

  it('draft for small batches alone, as the ranges of the engine do', () => {
    const drafting = { ...defaults, speculationDepth: 3 };
    const some = latencies({ ...drafting, speculationMaxBatch: 4 });
    const ranges = withEngine({
      speculationDepthPerBatchSize: [
        [1, 4, 3],
        [5, 5, 0],
      ],
    });
    assert.deepEqual(some, latencies(drafting, ranges));
    for (const other of [drafting, defaults]) assert.notDeepEqual(some, latencies(other));
  });
});

describe('what the gateway decides', () => {
  const serve = (candidate: Partial<Candidate>, load: number, classes?: Uint8Array) =>
    serveTraffic(
      profile,
      { ...vllmDefaults(profile), ...candidate },
      { trace, blockStarts, ...(classes && { priorities: classes }) },
      { load, seed: SEED },
    );
  const byId = ({ ids, e2eMs }: ReturnType<typeof serve>) =>
    new Map(Array.from(ids, (id, i) => [id, e2eMs[i]]));

  it('prefills prompts up to a length where they are decoded: all of them as without a split', () => {
    const all = serve({ split: '1:1', maxLocalPrefillLength: 1500 }, 1);
    assert.deepEqual(byId(all), byId(serve({}, 2)));
    const some = byId(serve({ split: '1:1', maxLocalPrefillLength: 700 }, 1));
    assert.notDeepEqual(some, byId(all));
    assert.notDeepEqual(some, byId(serve({ split: '1:1' }, 1)));
  });

  it('refuses the least urgent classes while the queue is long', () => {
    const classes = Uint8Array.from({ length: REQUESTS }, (_, i) => (i % 2 === 0 ? 0 : 2));
    const slow = { maxNumSeqs: 4, maxNumBatchedTokens: 512 };
    assert.equal(serve(slow, 4, classes).completed, REQUESTS);
    const { ids, completed } = serve({ ...slow, admissionQueueSeconds: 2 }, 4, classes);
    assert.ok(completed < 0.8 * REQUESTS, `${completed}`);
    const urgent = Array.from(ids.subarray(0, completed)).filter((id) => classes[id] === 0);
    assert.equal(urgent.length, REQUESTS / 2);
  });
});

describe('a load that is measured', () => {
  const point = measureLoad(profile, vllmDefaults(profile), { trace, blockStarts, priorities }, slo, {
    ...{ load: LOAD, seed: SEED },
  });
  const served = latencies();
  const inBlocks = (isCounted: (each: (typeof served)[number]) => boolean) =>
    [0, 1].map((block) => served.filter((each) => each.block === block && isCounted(each)).length);

  it('counts, block by block, the requests of each class, and those above each limit', () => {
    assert.deepEqual(point.requests, [250, 350]);
    assert.deepEqual(point.classRequests, [null, null, null, inBlocks(({ id }) => id % 3 === 0)]);
    assert.deepEqual(
      point.excess[0],
      inBlocks(({ ttft }) => ttft > 120),
    );
    // A request of one token has no TPOT and is above no limit of it.
    assert.deepEqual(
      point.excess[1],
      inBlocks(({ tpot }) => tpot > 30),
    );
    assert.deepEqual(
      point.excess[3],
      inBlocks(({ id, ttft }) => id % 3 === 0 && ttft > 60),
    );
    assert.ok(point.excess.every((blocks) => blocks.some((each) => each > 0)));
    for (const block of [0, 1]) {
      const total = served
        .filter((each) => each.block === block)
        .reduce((sum, { e2e }) => sum + e2e / 4000, 0);
      assert.ok(Math.abs(point.excess[2][block] - total) < 1e-6);
    }
  });

  it('counts the requests that meet every limit, even and odd ones apart', () => {
    const isGood = ({ id, ttft, tpot, e2e }: (typeof served)[number]) =>
      !(ttft > 120 || tpot > 30 || e2e > 4000 || (id % 3 === 0 && ttft > 60));
    const even = inBlocks((each) => each.id % 2 === 0 && isGood(each));
    const odd = inBlocks((each) => each.id % 2 === 1 && isGood(each));
    assert.deepEqual([point.goodEven, point.goodOdd], [even, odd]);
    assert.equal(goodShare(point), (even[0] + even[1] + odd[0] + odd[1]) / REQUESTS);
  });

  it('has the quantiles and means of all requests, and those of the SLO', () => {
    const sorted = (values: number[]) => Float64Array.from(values).sort();
    const ttft = sorted(served.map((each) => each.ttft));
    const tpot = sorted(served.map((each) => each.tpot).filter((ms) => !Number.isNaN(ms)));
    const e2e = sorted(served.map((each) => each.e2e));
    const urgent = sorted(served.filter(({ id }) => id % 3 === 0).map((each) => each.ttft));
    assert.deepEqual(
      [point.ttftP99Ms, point.tpotP99Ms],
      [percentileOfSorted(ttft, 99), percentileOfSorted(tpot, 99)],
    );
    const [ttftP90, tpotP50, e2eMean, urgentP50] = point.values;
    assert.deepEqual(
      [ttftP90, tpotP50, urgentP50],
      [percentileOfSorted(ttft, 90), percentileOfSorted(tpot, 50), percentileOfSorted(urgent, 50)],
    );
    assert.ok(Math.abs(e2eMean! - e2e.reduce((sum, ms) => sum + ms, 0) / REQUESTS) < 1e-6);
  });
});

describe('the use of an SLO', () => {
  const p90 = parseSlo('ttft_p90=1s');
  const point = pointAt([1, 1], 1, { requests: [100, 300], excess: [[20, 10]] });

  it('is the share of the requests above the limit, over the share that may be', () => {
    assert.ok(Math.abs(sloUse(point, p90) - 0.75) < 1e-12);
    assert.ok(Math.abs(sloUse(point, p90, [1, 0]) - 2) < 1e-12);
    assert.ok(Math.abs(sloUse(point, p90, [2, 1]) - 1) < 1e-12);
  });

  it('is the mean over the limit for a mean', () => {
    assert.equal(sloUse({ ...point, excess: [[250, 350]] }, parseSlo('ttft_mean=1s')), 1.5);
  });

  it('is that of the term that is used most', () => {
    const two = parseSlo('ttft_p90=1s,tpot_p50=1s');
    const classRequests = [null, null];
    for (const excess of [
      [
        [40, 40],
        [10, 10],
      ],
      [
        [2, 2],
        [200, 200],
      ],
    ]) {
      assert.ok(Math.abs(sloUse({ ...point, excess, classRequests }, two) - 2) < 1e-12);
    }
  });

  it('counts a bound of a class among its own requests, and not where there are none', () => {
    const own = { ...point, classRequests: [[20, 40]], excess: [[6, 6]] };
    assert.ok(Math.abs(sloUse(own, parseSlo('class0_ttft_p90=1s')) - 2) < 1e-12);
    assert.equal(sloUse({ ...own, classRequests: [[0, 40]] }, parseSlo('class0_ttft_p90=1s'), [1, 0]), 0);
  });
});
