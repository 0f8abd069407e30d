import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fixtureProfile as profile } from '../../test/profile-fixture.ts';
import { IterationTimer } from '../engine/iteration-timer.ts';
import { msFromTicks, ticksFromMs } from '../engine/ticks.ts';
import { kvAware, ROUTER_POLICIES } from '../policy/built-in.ts';
import type { EngineProfile } from '../profiles/engine-profile.ts';
import { RandomStream } from '../random/counter-random.ts';
import { SimulatorError } from '../simulator-error.ts';
import type { Trace } from '../traces/trace.ts';
import { simulateTrace } from './simulate-trace.ts';
import type { SimulationOptions } from './simulation-options.ts';
import type { SimulationRun } from './simulation-run.ts';

function traceOf(rows: readonly (readonly [arrivalMs: number, input: number, output: number])[]): Trace {
  return {
    source: 'test',
    arrivalMs: Float64Array.from(rows, ([arrivalMs]) => arrivalMs),
    inputTokens: Int32Array.from(rows, ([, input]) => input),
    outputTokens: Int32Array.from(rows, ([, , output]) => output),
  };
}

/** Poisson arrivals of chat-like requests. */
function poisson(requests: number, perSecond: number): Trace {
  const draws = new RandomStream(7, 'test');
  let at = 0;
  return traceOf(
    Array.from({ length: requests }, () => {
      at += draws.exponential(1000 / perSecond);
      return [at, draws.integer(20, 400), draws.integer(10, 200)] as const;
    }),
  );
}

const run = (trace: Trace, options: Partial<SimulationOptions> = {}) =>
  simulateTrace(trace, { profile, ...options });
const mean = (values: Float64Array) => values.reduce((sum, value) => sum + value, 0) / values.length;

describe('a simulated trace', () => {
  it('times a lone request as the law says', () => {
    const timer = new IterationTimer(profile.weights.FP16!.law);
    const overhead = ticksFromMs(profile.requestOverheadMs);
    const prefill = timer.fixedTicks(100, 0, 100 * 50);
    let decodes = 0;
    for (let context = 101; context < 101 + 9; context++) {
      decodes += timer.fixedTicks(1, 1, 0) + timer.contextTicks(1) * context;
    }
    const { ttftMs, tpotMs, e2eMs, simulatedMs } = run(traceOf([[0, 100, 10]]));
    assert.equal(ttftMs[0], msFromTicks(overhead + prefill));
    assert.equal(tpotMs[0], msFromTicks(decodes) / 9);
    assert.equal(e2eMs[0], msFromTicks(overhead + prefill + decodes));
    assert.equal(simulatedMs, e2eMs[0]);
  });

  it('has no time per output token for a request of one token', () => {
    assert.ok(Number.isNaN(run(traceOf([[0, 100, 1]])).tpotMs[0]));
  });

  it('counts requests that never fit, and serves the others', () => {
    const { completed, rejected, ids } = run(
      traceOf([
        [0, 50, 5],
        [1, 500, 5],
        [2, 50, 5],
      ]),
      { kvBlocks: 8 },
    );
    assert.equal(completed, 2);
    assert.equal(rejected, 1);
    assert.deepEqual([...ids], [0, 2]);
  });

  it('keeps time over months of simulated traffic', () => {
    const hours = 24 * 60;
    const rows = Array.from({ length: hours }, (_, hour) => [hour * 3_600_000, 100, 10] as const);
    const { ttftMs, tpotMs, simulatedMs } = run(traceOf(rows));
    for (const ttft of ttftMs) assert.ok(Math.abs(ttft - ttftMs[0]) < 1e-4);
    for (const tpot of tpotMs) assert.ok(Math.abs(tpot - tpotMs[0]) < 1e-4);
    assert.ok(Math.abs(simulatedMs - ((hours - 1) * 3_600_000 + run(traceOf([[0, 100, 10]])).e2eMs[0])) < 1);
  });

  it('finds a shared prompt in the cache, and does not with the cache off', () => {
    const chunk = Float64Array.of(1, 2, 3, 1, 2, 4);
    const trace = {
      ...traceOf([
        [0, 1600, 5],
        [5000, 1600, 5],
      ]),
      prefixBlocks: { blockTokens: 512, ids: chunk, offsets: Int32Array.of(0, 3, 6) },
    };
    const cached = run(trace);
    assert.equal(cached.counters.cachedTokens, 1024);
    assert.ok(cached.ttftMs[1] < 0.6 * cached.ttftMs[0]);
    const uncached = run(trace, { prefixCaching: false });
    assert.equal(uncached.counters.cachedTokens, 0);
    assert.equal(uncached.counters.prefillTokens, 3200);
  });

  it('loads prompts from the host that the pool has lost, at the bandwidth of the link', () => {
    const [first, other] = [Float64Array.of(1, 2, 3), Float64Array.of(4, 5, 6)];
    const trace: Trace = {
      ...traceOf([
        [0, 1536, 5],
        [5000, 1536, 5],
        [10_000, 1536, 5],
      ]),
      prefixBlocks: {
        ...{ blockTokens: 512, offsets: Int32Array.of(0, 3, 6, 9) },
        ids: Float64Array.of(...first, ...other, ...first),
      },
    };
    // Room for one prompt.
    const serve = (hostKv?: EngineProfile['hostKv']) =>
      run(trace, { profile: { ...profile, hostKv }, kvBlocks: 97 });
    const lost = serve();
    assert.deepEqual([lost.counters.loadedTokens, lost.counters.cachedTokens], [0, 0]);
    const slow = serve({ sizeGiB: 8, gigabytesPerSecond: 10 });
    const fast = serve({ sizeGiB: 8, gigabytesPerSecond: 20 });
    // The last block is computed again, as its logits are wanted.
    assert.deepEqual([slow.counters.loadedTokens, slow.counters.prefillTokens], [1520, 2 * 1536 + 16]);
    assert.ok(slow.ttftMs[2] < 0.6 * lost.ttftMs[2], `${slow.ttftMs[2]} ${lost.ttftMs[2]}`);
    const loadMs = (1520 * profile.model.kvBytesPerToken) / 10e6;
    assert.ok(Math.abs(slow.ttftMs[2] - fast.ttftMs[2] - loadMs / 2) < 1e-6);
    // A tier that holds one prompt has dropped it for the other.
    const promptGiB = (1536 * profile.model.kvBytesPerToken) / 2 ** 30;
    assert.equal(serve({ sizeGiB: promptGiB, gigabytesPerSecond: 10 }).counters.loadedTokens, 0);
    assert.equal(serve({ sizeGiB: 2 * promptGiB, gigabytesPerSecond: 10 }).counters.loadedTokens, 1520);
  });

  describe('on several replicas', () => {
    const trace = poisson(2000, 40);

    it('completes every request once, whatever the router', () => {
      for (const router of ROUTER_POLICIES) {
        const { ids, completed } = run(trace, { replicas: 3, router });
        assert.equal(completed, 2000);
        assert.equal(new Set(ids).size, 2000);
      }
    });

    it('waits less than on one', () => {
      const ttft = (replicas: number) => mean(run(trace, { replicas, maxNumSeqs: 32 }).ttftMs);
      assert.ok(ttft(4) < 0.5 * ttft(2));
      assert.ok(ttft(2) < 0.7 * ttft(1));
    });

    it('balances uneven requests better by load than in turns', () => {
      // Every second request is long: in turns they all meet on one replica.
      const uneven = traceOf(
        Array.from({ length: 400 }, (_, i) => [i * 60, i % 2 === 0 ? 2000 : 50, i % 2 === 0 ? 300 : 20]),
      );
      const worst = (result: SimulationRun) => Math.max(...result.e2eMs);
      const options = { replicas: 2, maxNumSeqs: 16 };
      assert.ok(
        worst(run(uneven, { ...options, router: 'least_loaded' })) <
          0.8 * worst(run(uneven, { ...options, router: 'round_robin' })),
      );
    });

    it('keeps a replica for the urgent class', () => {
      const priorities = Uint8Array.from({ length: 2000 }, (_, i) => (i % 10 === 0 ? 0 : 1));
      const urgentTtft = (router: 'least_loaded' | 'priority') => {
        const { ids, ttftMs } = run(trace, { replicas: 2, router, priorities, maxNumSeqs: 16 });
        return mean(ttftMs.filter((_, i) => priorities[ids[i]] === 0));
      };
      assert.ok(urgentTtft('priority') < 0.2 * urgentTtft('least_loaded'));
    });
  });

  describe('on engines of two kinds', () => {
    const law = profile.weights.FP16!.law;
    const fast: EngineProfile = {
      ...profile,
      weights: { FP16: { ...profile.weights.FP16!, law: { ...law, perTokenUs: law.perTokenUs / 4 } } },
    };
    const trace = poisson(600, 12);
    const prefillOf = (options: Partial<SimulationOptions>) => {
      const tokens: number[] = [];
      run(trace, {
        ...options,
        router: 'least_loaded',
        onIterations: ({ replica, prefillTokens }) => {
          tokens[replica] = (tokens[replica] ?? 0) + prefillTokens;
        },
      });
      return tokens;
    };

    it('is served by both, and more of it by those with the larger weight', () => {
      const even = prefillOf({ secondPool: { profile, replicas: 2 } });
      assert.equal(even.length, 3);
      const weighted = prefillOf({ secondPool: { profile, replicas: 2, weight: 5 } });
      assert.ok(weighted[0] < 0.8 * even[0], `${weighted[0]} ${even[0]}`);
      // Engines of the same kind are replicas.
      assert.deepEqual(even, prefillOf({ replicas: 3 }));
    });

    it('prefills on one kind and decodes on the other', () => {
      const split = { prefill: 1, decode: 1 };
      const ttft = (options: Partial<SimulationOptions>) => mean(run(trace, { split, ...options }).ttftMs);
      assert.equal(ttft({ secondPool: { profile: fast } }), ttft({}));
      assert.ok(ttft({ profile: fast, secondPool: { profile } }) < 0.8 * ttft({}));
    });

    it('gets a token once from a group that holds it several times', () => {
      const copies = 400;
      const model = { ...profile.model, kvBytesPerToken: copies * profile.model.kvBytesPerToken };
      const replicated = { ...profile, model, memory: { ...profile.memory, utilization: 1 } };
      const kvBlocks = 10_000;
      const e2e = (first: EngineProfile, second: EngineProfile) =>
        mean(
          run(trace, {
            ...{ profile: first, split: { prefill: 1, decode: 1 }, kvBlocks },
            secondPool: { profile: second, kvBlocks },
          }).e2eMs,
        );
      assert.equal(e2e(replicated, profile), e2e(profile, profile));
      assert.ok(e2e(replicated, replicated) > 1.2 * e2e(profile, profile));
    });

    it('is refused with another model, another format of KV, or replicas beside a split', () => {
      const second = (model: Partial<EngineProfile['model']>, options: Partial<SimulationOptions> = {}) =>
        run(trace, {
          secondPool: { profile: { ...profile, model: { ...profile.model, ...model } } },
          ...options,
        });
      const split = { prefill: 1, decode: 1 };
      assert.throws(() => second({ name: 'other' }), /`secondPool` to serve/);
      assert.throws(() => second({ kvCache: 'FP8' }, { split }), /format of those that prefill/);
      assert.throws(() => run(trace, { split, secondPool: { profile, replicas: 1 } }), /got both/);
    });
  });

  it('finds more prefixes when requests go where theirs was sent, on more than 32 replicas too', () => {
    const groups = 200;
    const rows = Array.from({ length: 1200 }, (_, i) => [i * 40, 2048, 4] as const);
    const draws = new RandomStream(3, 'groups');
    const trace: Trace = {
      ...traceOf(rows),
      prefixBlocks: {
        ...{ blockTokens: 1024, offsets: Int32Array.from({ length: 1201 }, (_, i) => i) },
        ids: Float64Array.from(rows, () => draws.integer(0, groups - 1)),
      },
    };
    for (const replicas of [4, 40]) {
      const cached = (router: SimulationOptions['router']) =>
        run(trace, { replicas, router }).counters.cachedTokens;
      assert.ok(cached('prefix_aware') > 1.2 * cached('least_loaded'), `${replicas}`);
    }
  });

  describe('with a router that knows what a prompt costs', () => {
    // A prompt that its replica has, while other prompts wait there.
    const rows = [
      [0, 4096, 2],
      [2000, 4096, 2],
      [4000, 4096, 2],
      [4001, 4096, 2],
      [4002, 4096, 2],
    ] as const;
    const trace: Trace = {
      ...traceOf(rows),
      prefixBlocks: {
        ...{ blockTokens: 512, offsets: Int32Array.from({ length: 6 }, (_, i) => 8 * i) },
        ids: Float64Array.from({ length: 40 }, (_, i) => (i < 8 || i >= 16 ? i % 8 : i)),
      },
    };
    const hybrid = {
      ...profile,
      engine: { ...profile.engine, name: 'vLLM' },
      model: { ...profile.model, kvGroups: { bytesPerToken: 65_536, attention: [{ window: 128 }, {}] } },
    };
    for (const [layers, served] of Object.entries({
      'full attention': profile,
      'windows beside it': hybrid,
    })) {
      const cached = (costs: Parameters<typeof kvAware>[0]) =>
        run(trace, { replicas: 2, profile: served, policy: kvAware(costs) }).counters.cachedTokens / 4080;

      it(`sends a prompt to the replica that has it, unless another has less to do (${layers})`, () => {
        assert.equal(cached({ overlapScoreCredit: 4, prefillLoadScale: 4 }), 3);
        assert.equal(cached({ prefillLoadScale: 4 }), 2);
      });
    }
  });

  it('refuses what it cannot simulate, and says why', () => {
    const trace = traceOf([[0, 10, 10]]);
    assert.throws(() => run(trace, { replicas: 0 }), SimulatorError);
    assert.throws(() => run(trace, { router: 'priority' }), /at least 2 replicas/);
    assert.throws(() => run(trace, { weights: 'FP8' }), /no coefficients for FP8/);
    assert.throws(() => run(trace, { maxNumSeqs: 0 }), /`maxNumSeqs`/);
    assert.throws(() => run(trace, { speculationDepth: 2, acceptance: 'poems' }), /sharegpt/);
    const heavy = { ...profile, weights: { FP16: { ...profile.weights.FP16!, weightGiB: 39 } } };
    assert.throws(() => simulateTrace(trace, { profile: heavy }), /Nothing is left for the KV pool/);
  });
});
