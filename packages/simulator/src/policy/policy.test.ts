import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fixtureProfile as profile } from '../../test/profile-fixture.ts';
import { simulateTrace } from '../simulation/simulate-trace.ts';
import type { SimulationOptions } from '../simulation/simulation-options.ts';
import type { Trace } from '../traces/trace.ts';
import { weighted } from './built-in.ts';
import { definePolicy, type Policy, type PolicyFunctions } from './policy.ts';
import type { ReplicaView, RequestView } from './views.ts';

const requests = 400;
const trace: Trace = {
  source: 'test',
  arrivalMs: Float64Array.from({ length: requests }, (_, i) => i * 40),
  inputTokens: Int32Array.from({ length: requests }, (_, i) => 200 + ((i * 37) % 11) * 150),
  outputTokens: Int32Array.from({ length: requests }, (_, i) => 10 + ((i * 13) % 7) * 30),
  prefixBlocks: {
    ...{ blockTokens: 128, offsets: Int32Array.from({ length: requests + 1 }, (_, i) => i) },
    ids: Float64Array.from({ length: requests }, (_, i) => i % 9),
  },
};
const serve = (policy: Policy | undefined, options: Partial<SimulationOptions> = {}) =>
  simulateTrace(trace, { profile, replicas: 3, maxNumSeqs: 16, policy, ...options });
/** Latencies by request. */
const latencies = ({ ids, e2eMs }: ReturnType<typeof serve>) =>
  new Map(Array.from(ids, (id, i) => [id, e2eMs[i]]));

describe('a policy', () => {
  it('chooses what the built-in router chooses when it scores as that does', () => {
    const score: PolicyFunctions['score'] = (_, replica) => -replica.requests_in_flight;
    const own = serve(definePolicy({ score, ties: 'first' }));
    assert.deepEqual(latencies(own), latencies(serve(undefined, { router: 'least_loaded' })));
    const both = serve({
      score: (_, replica, _now, { replicas }) => {
        const loads = replicas.map((each) => each.requests_in_flight);
        const most = Math.max(...loads);
        return (
          (most - replica.requests_in_flight) / Math.max(1, most - Math.min(...loads)) + replica.prefix_match
        );
      },
    });
    assert.deepEqual(latencies(both), latencies(serve(undefined, { router: 'prefix_aware' })));
  });

  it('of weights compares queues among the replicas of each choice for a request', () => {
    const { score } = weighted({ queue: 1, cache: 0, prefix: 0 });
    const request = {};
    const scores = (...queues: number[]) => {
      const replicas = queues.map((requests_in_flight) => ({
        requests_in_flight,
        weight: 1,
        kv_cache_usage_perc: 0,
      }));
      return replicas.map((each) => score!(request as never, each as never, 0, { replicas } as never));
    };
    assert.deepEqual(scores(10, 30), [1, 0]);
    assert.deepEqual(scores(2, 1), [0, 1]);
  });

  it('excludes a replica by -Infinity', () => {
    const served = new Set<number>();
    serve(
      { score: (_, replica) => (replica.index === 1 ? Number.NEGATIVE_INFINITY : 0) },
      { onIterations: ({ replica }) => served.add(replica) },
    );
    assert.deepEqual([...served].sort(), [0, 2]);
  });

  it('sees requests without their answers, and replicas as they were scraped', () => {
    const requests: RequestView[] = [];
    const ages: number[] = [];
    const seen: [index: number, scraped: number, sent: number][] = [];
    serve(
      {
        score(request, replica, now) {
          requests.push(request);
          ages.push(replica.scrape_age);
          assert.ok(Math.abs(now - request.arrival) < 1e-9);
          seen.push([
            replica.index,
            replica.num_requests_running + replica.num_requests_waiting,
            replica.requests_sent,
          ]);
          return -replica.requests_in_flight;
        },
      },
      {
        metricsIntervalMs: 1000,
        predictedOutputs: new Float64Array(400).fill(80),
        predictedOutputError: 0.3,
      },
    );
    const { prompt_tokens, priority, prefix_hashes, predicted_output_tokens, predicted_output_error } =
      requests[3];
    assert.deepEqual(
      [prompt_tokens, priority, prefix_hashes, predicted_output_tokens, predicted_output_error],
      [trace.inputTokens[1], 0, [1], 80, 0.3],
    );
    // Nothing else can be read, and the class hides its fields.
    assert.deepEqual([Object.keys(requests[0]), JSON.stringify(requests[0])], [[], '{}']);
    assert.ok(ages.every((age) => age >= 0 && age < 1 + 1e-9) && ages.some((age) => age > 0.5));
    // Between two scrapes, 25 requests come, and the scraped numbers stay.
    const first = seen.slice(0, 75);
    assert.deepEqual([...new Set(first.map(([, scraped]) => scraped))], [0]);
    assert.ok(first.some(([, , sent]) => sent > 5));
    assert.ok(seen.slice(75).some(([, scraped]) => scraped > 0));
  });

  it('refuses requests, which count as answered where arrivals depend on answers', () => {
    const refusing: Policy = { admit: ({ prompt_tokens }) => prompt_tokens < 1000 };
    const refused = trace.inputTokens.filter((tokens) => tokens >= 1000).length;
    for (const concurrency of [undefined, 12]) {
      const { completed, policy } = serve(refusing, { concurrency });
      assert.deepEqual([completed, policy], [requests - refused, { refused, faults: [] }]);
    }
  });

  it('refuses with a probability, the same requests again in the same run', () => {
    const refused = () => serve({ admit: () => 0.25 }, { seed: 4 }).policy!.refused;
    assert.ok(refused() > 250 && refused() < 350);
    assert.equal(refused(), refused());
    assert.notEqual(refused(), serve({ admit: () => 0.25 }, { seed: 5 }).policy!.refused);
  });

  it('starts anew in each run when it is a function', () => {
    let starts = 0;
    const policy: Policy = () => {
      starts++;
      let turn = 0;
      return { score: (_, { index }) => (index === Math.floor(turn++ / 3) % 3 ? 1 : 0) };
    };
    assert.deepEqual(latencies(serve(policy)), latencies(serve(policy)));
    assert.equal(starts, 2);
  });

  it('is replaced by the default where it throws or answers what is none, and that is counted', () => {
    const wrong: [PolicyFunctions['score'], RegExp][] = [
      [() => Number.NaN, /^Expected `score` to answer a number, got `NaN` \(number\)$/],
      [() => 'high' as unknown as number, /got `high` \(string\)$/],
      [() => undefined as unknown as number, /got `undefined` \(undefined\)$/],
      [() => Number.NEGATIVE_INFINITY, /^Expected `score` to answer a number above -Infinity for a replica/],
      [
        () => {
          throw new RangeError('no such replica');
        },
        /^`score` threw: no such replica$/,
      ],
      [
        (_, replica) => {
          (replica as { kind: number }).kind = 3;
          return 1;
        },
        /^`score` threw: Cannot set property kind/,
      ],
    ];
    for (const [score, message] of wrong) {
      const run = serve({ score }, { router: 'least_loaded' });
      assert.deepEqual(latencies(run), latencies(serve(undefined, { router: 'least_loaded' })));
      assert.equal(run.policy!.faults.length, 1);
      assert.deepEqual([run.policy!.faults[0].function, run.policy!.faults[0].count], ['score', requests]);
      assert.match(run.policy!.faults[0].message, message);
    }
    for (const admit of [() => Number.NaN, () => 2, () => null as unknown as boolean]) {
      const run = serve({ admit });
      assert.deepEqual([run.completed, run.policy!.faults[0].count], [requests, requests]);
    }
  });

  it('reads what was sent where of a prompt', () => {
    const matches: number[][] = [[], [], []];
    const score = (_: RequestView, replica: ReplicaView) => {
      matches[replica.index].push(replica.prefix_match_tokens);
      return replica.index === 2 ? 1 : 0;
    };
    serve({ score });
    // All nine prefixes are on the third replica after nine requests.
    const none = new Array(400).fill(0);
    assert.deepEqual(matches, [none, none, none.map((_, i) => (i < 9 ? 0 : 128))]);
  });

  it('says which requests are prefilled apart', () => {
    const split = { replicas: undefined, split: { prefill: 1, decode: 2 } };
    const prefilled = (
      disaggregate: PolicyFunctions['disaggregate'],
      options: Partial<SimulationOptions> = {},
    ) => {
      const tokens = [0, 0, 0];
      const run = serve(
        { disaggregate },
        {
          ...{ ...split, ...options, prefixCaching: false },
          onIterations: ({ replica, prefillTokens }) => {
            tokens[replica] += prefillTokens;
          },
        },
      );
      assert.equal(run.completed, requests);
      return { tokens, run };
    };
    const total = trace.inputTokens.reduce((sum, each) => sum + each, 0);
    const apart = serve(undefined, { ...split, prefixCaching: false, router: 'least_loaded' });
    const always = prefilled(() => true, { router: 'least_loaded' });
    assert.deepEqual(latencies(always.run), latencies(apart));
    assert.deepEqual(always.tokens, [total, 0, 0]);
    const long = trace.inputTokens.reduce((sum, each) => sum + (each > 900 ? each : 0), 0);
    for (const options of [{}, { concurrency: 20 }, { metricsIntervalMs: 500 }]) {
      const { tokens } = prefilled(({ prompt_tokens }, { replicas }) => {
        assert.deepEqual(
          replicas.map(({ role }) => role),
          ['decode', 'decode'],
        );
        return prompt_tokens > 900;
      }, options);
      assert.ok(tokens[0] === long && tokens[1] > 0 && tokens[2] > 0, `${tokens}`);
    }
  });

  describe('that orders the queue', () => {
    const busy = { replicas: 1, maxNumSeqs: 4, prefixCaching: false } as const;
    const priorities = Uint8Array.from({ length: requests }, (_, i) => (i * 5) % 3);
    const byArrival: Policy = { order: (queue) => queue.toSorted((a, b) => a.arrival - b.arrival) };
    const byClass: Policy = {
      order: (queue) => queue.sort((a, b) => a.priority - b.priority || a.arrival - b.arrival),
    };

    it('serves as vLLM does with that order, whatever else is on', () => {
      for (const options of [
        {},
        { kvBlocks: 300 },
        { profile: { ...profile, asyncScheduling: true } },
        { speculationDepth: 2, kvBlocks: 400 },
        { replicas: 3, router: 'least_loaded' as const },
        { replicas: undefined, split: { prefill: 1, decode: 1 } },
        { concurrency: 30 },
      ]) {
        const set = { ...busy, ...options, priorities };
        assert.deepEqual(latencies(serve(byArrival, set)), latencies(serve(undefined, set)));
        if ('kvBlocks' in options) continue;
        const classes = serve(undefined, { ...set, schedulingPolicy: 'priority' });
        assert.deepEqual(latencies(serve(byClass, set)), latencies(classes));
      }
    });

    it('admits the shortest prediction first', () => {
      const predictedOutputs = Float64Array.from(trace.outputTokens);
      const shortest: Policy = {
        order: (queue) =>
          queue.sort(
            (a, b) => a.predicted_output_tokens! - b.predicted_output_tokens! || a.arrival - b.arrival,
          ),
      };
      const mean = (policy: Policy | undefined) => {
        const { e2eMs } = serve(policy, { ...busy, predictedOutputs });
        return e2eMs.reduce((sum, each) => sum + each, 0) / e2eMs.length;
      };
      assert.ok(mean(shortest) < 0.7 * mean(undefined), `${mean(shortest)} ${mean(undefined)}`);
    });

    it('is asked at the time of each schedule', () => {
      // In odd seconds the last comes first.
      let last = 0;
      const { policy, completed } = serve(
        {
          order(queue, now) {
            assert.ok(now >= last && queue.length > 1 && queue.every(({ arrival }) => arrival <= now + 1e-9));
            last = now;
            return Math.floor(now) % 2 === 0 ? queue : queue.reverse();
          },
        },
        busy,
      );
      assert.deepEqual([policy!.faults, completed], [[], requests]);
    });

    it('leaves the order of arrival where it answers what is none', () => {
      const wrong: PolicyFunctions['order'][] = [
        (queue) => queue.slice(1),
        (queue) => queue.fill(queue[0]),
        (queue) => void queue.reverse() as unknown as RequestView[],
        () => {
          throw new Error('no');
        },
      ];
      for (const order of wrong) {
        const run = serve({ order }, busy);
        assert.deepEqual(latencies(run), latencies(serve(undefined, busy)));
        assert.match(
          run.policy!.faults[0].message,
          /the \d+ requests of the queue, each once|`order` threw: no/,
        );
      }
    });
  });

  it('is refused with a sentence when it is not functions', () => {
    const wrong: [unknown, RegExp][] = [
      [null, /The policy: expected an object with any of order, admit, score, disaggregate, scale, got null/],
      [{ score: 3 }, /expected `score` to be a function, got number/],
      [{ rank: () => 1 }, /expected only order, .*, got `rank`/],
      [{ ties: 'last' }, /`ties` to be in_turns or first, got last/],
    ];
    for (const [policy, message] of wrong) {
      assert.throws(() => definePolicy(policy as Policy), { code: 'POLICY', message });
      assert.throws(() => serve(() => policy as PolicyFunctions), { code: 'POLICY', message });
    }
  });
});
