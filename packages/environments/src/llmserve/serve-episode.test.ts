import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findProfile } from '@servegym/profiles';
import {
  closedBatch,
  type EngineProfile,
  type SimulationOptions,
  simulateTrace,
  usedGiB,
} from '@servegym/simulator';
import fc from 'fast-check';
import { anyAction } from './random-actions.fixture.ts';
import { type ServeAction, type ServeObservation, serveObservationSchema, TASK_IDS } from './schema.ts';
import { rewardComponents, ServeEpisode, totalReward } from './serve-episode.ts';
import { SERVE_TASKS } from './serve-task.ts';

/** The server without checkpoints in host memory: a change of precision is a cold start. */
function coldProfile(taskId: (typeof TASK_IDS)[number]): EngineProfile {
  const { hostCheckpoints: _, ...profile } = findProfile(SERVE_TASKS[taskId].profile);
  return profile;
}

function play(
  taskId: (typeof TASK_IDS)[number],
  seed: number,
  actionOf: (window: number) => ServeAction,
  profile?: EngineProfile,
) {
  const episode = new ServeEpisode(SERVE_TASKS[taskId], seed, { ...(profile && { profile }) });
  const observations: ServeObservation[] = [];
  const rewards: number[] = [];
  while (!episode.done) {
    rewards.push(episode.step(actionOf(episode.window)));
    observations.push(episode.observation());
  }
  return { episode, observations, rewards };
}

const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

describe('an llmserve episode', () => {
  for (const taskId of TASK_IDS) {
    const { defaultAction } = SERVE_TASKS[taskId];

    it(`gives the same trajectory for the same seed and actions (${taskId})`, () => {
      fc.assert(
        fc.property(fc.nat(), fc.array(anyAction, { minLength: 1, maxLength: 6 }), (seed, actions) => {
          const runs = [0, 1].map(() => play(taskId, seed, (w) => actions[w % actions.length]));
          assert.deepEqual(runs[0].observations, runs[1].observations);
          assert.deepEqual(runs[0].rewards, runs[1].rewards);
        }),
        { numRuns: 5 },
      );
    });

    it(`keeps its promises about observations and rewards whatever is done (${taskId})`, () => {
      fc.assert(
        fc.property(fc.nat(), fc.array(anyAction, { minLength: 1, maxLength: 20 }), (seed, actions) => {
          const episode = new ServeEpisode(SERVE_TASKS[taskId], seed);
          for (const action of actions) {
            const reward = episode.step(action);
            assert.ok(reward >= -1 && reward <= 1);
            const { throughput, slo, memory, cost, quality } = episode.components;
            assert.ok(Math.abs(reward - (throughput + slo + memory + cost + quality)) < 1e-12);
            serveObservationSchema.parse(episode.observation());
            for (const gpu of [0, 1]) assert.ok(usedGiB(episode.cluster.memoryOf(gpu)) <= 40 + 1e-9);
          }
          const { cluster, totals, requests, window } = episode;
          const onTheirWay = cluster.engines.reduce((sum, engine) => sum + engine.futureCount, 0);
          const inside = cluster.waitingCount + cluster.runningCount + onTheirWay;
          const finished = totals.requestsServed + totals.requestsRejected;
          assert.equal(requests.windowStarts[window], finished + inside);
        }),
        { numRuns: 25 },
      );
    });

    it(`goes on from a snapshot exactly as before (${taskId})`, () => {
      fc.assert(
        fc.property(fc.nat(), fc.array(anyAction, { minLength: 4, maxLength: 12 }), (seed, actions) => {
          const episode = new ServeEpisode(SERVE_TASKS[taskId], seed);
          const half = actions.length >> 1;
          for (const action of actions.slice(0, half)) episode.step(action);
          const snapshot = episode.snapshot();
          const rest = () =>
            actions
              .slice(half)
              .map((action) => [episode.step(action), episode.observation(), { ...episode.totals }]);
          const first = rest();
          episode.restore(snapshot);
          assert.deepEqual(rest(), first);
        }),
        { numRuns: 15 },
      );
    });

    it(`has a queue, a TTFT and a KV pool that answer to the action (${taskId})`, () => {
      const ample = { ...defaultAction, quantization_tier: 'INT8', speculation_depth: 3 } as const;
      const wide = play(taskId, 11, () => ample);
      const narrow = play(taskId, 11, () => ({ ...ample, batch_cap: 4 }));
      const tight = play(taskId, 11, () => ({ ...ample, kv_budget_fraction: 0.1 }));
      const average = (run: typeof wide, field: 'queue_depth' | 'p99_ttft_ms' | 'kv_cache_occupancy') =>
        mean(run.observations.map((observation) => observation[field]));
      assert.ok(average(narrow, 'queue_depth') > 5 * average(wide, 'queue_depth') + 10);
      assert.ok(average(narrow, 'p99_ttft_ms') > 2 * average(wide, 'p99_ttft_ms'));
      assert.ok(average(tight, 'kv_cache_occupancy') > 1.3 * average(wide, 'kv_cache_occupancy'));
      assert.ok(mean(narrow.rewards) < mean(wide.rewards));
    });
  }

  it('does not call a window that serves nobody compliant', () => {
    const flapping = (window: number): ServeAction => ({
      ...SERVE_TASKS.static_workload.defaultAction,
      // A reload in every window.
      quantization_tier: window % 2 === 0 ? 'INT8' : 'FP16',
    });
    const { observations } = play('static_workload', 2, flapping, coldProfile('static_workload'));
    const settled = observations.slice(2);
    assert.ok(settled.every((observation) => observation.slo_compliance_rate < 0.05));
  });

  it('counts a request that is late once, whether or not it is ever served', () => {
    const { defaultAction } = SERVE_TASKS.static_workload;
    const flapping = (window: number): ServeAction => ({
      ...defaultAction,
      quantization_tier: window % 2 === 0 ? 'INT8' : 'FP16',
    });
    for (const actionOf of [flapping, () => ({ ...defaultAction, batch_cap: 1 })]) {
      const episode = new ServeEpisode(SERVE_TASKS.static_workload, 5);
      let before = 0;
      while (!episode.done) {
        episode.step(actionOf(episode.window));
        assert.ok(episode.sloViolations() >= before);
        before = episode.sloViolations();
      }
      const { requests, totals, cluster } = episode;
      assert.ok(before <= requests.arrivalTicks.length);
      // All but the newest of those that wait are late.
      assert.ok(before > cluster.waitingCount / 2 && cluster.waitingCount > totals.requestsServed);
    }
  });

  it('charges a switch of precision with a reload', () => {
    const { defaultAction } = SERVE_TASKS.static_workload;
    const at = 20;
    const changing = (window: number): ServeAction => ({
      ...defaultAction,
      batch_cap: 96,
      quantization_tier: window < at ? 'FP16' : 'INT8',
    });
    const { observations } = play('static_workload', 2, changing);
    // Both checkpoints in host memory: 25 GB over 25 GB/s and half a second, of the five of a window.
    const { reload_s } = observations[at].server;
    assert.ok(reload_s > 1.4 && reload_s < 1.6, `${reload_s}`);
    assert.ok(observations[at].p50_ttft_ms > 3 * observations[at - 1].p50_ttft_ms);
    assert.ok(observations[at].eviction_events > 0);
    const cold = play('static_workload', 2, changing, coldProfile('static_workload')).observations;
    const { reloadSeconds } = findProfile(SERVE_TASKS.static_workload.profile);
    const dark = Math.floor(reloadSeconds / SERVE_TASKS.static_workload.windowSeconds);
    assert.ok(cold.slice(at, at + dark).every((observation) => observation.throughput_tps === 0));
    assert.ok(cold[at - 1].throughput_tps > 500 && cold[at + dark + 3].throughput_tps > 500);
  });

  it('runs out of memory when tenants need what a greedy pool holds, and not with the default pool', () => {
    const { defaultAction } = SERVE_TASKS.adversarial_multitenant;
    const ooms = (kv_budget_fraction: number) => {
      const episode = new ServeEpisode(SERVE_TASKS.adversarial_multitenant, 4);
      let count = 0;
      while (!episode.done) {
        episode.step({ ...defaultAction, kv_budget_fraction });
        count += episode.cluster.events.filter((event) => event.kind === 'oom').length;
      }
      return count;
    };
    assert.ok(ooms(1) > 0);
    assert.equal(ooms(defaultAction.kv_budget_fraction), 0);
  });
});

const weights = { throughput: 0.4, slo: 0.6, memory: 0.3, cost: 0.2 };
const outcome = {
  ...{ servedShare: 0.5, sloAttainment: 0.75, memoryShare: 0.25, costShare: 0.5 },
  ...{ qualityLoss: 0.02, qualityValue: 3 },
};

describe('the reward of a window', () => {
  it('pays for tokens and objectives, and takes memory, cost and quality away', () => {
    const components = rewardComponents(outcome, weights);
    const expected = { throughput: 0.2, slo: 0.45, memory: -0.075, cost: -0.1, quality: -0.06 };
    for (const [part, value] of Object.entries(expected)) {
      assert.ok(Math.abs(components[part as keyof typeof expected] - value) < 1e-12, part);
    }
    assert.ok(Math.abs(totalReward(components) - 0.415) < 1e-12);
  });

  it('is held within -1 and 1', () => {
    const nothing = { throughput: 0, slo: 0, memory: 0, cost: 0, quality: 0 };
    assert.equal(totalReward({ ...nothing, quality: -7 }), -1);
    assert.equal(totalReward({ ...nothing, slo: 1, throughput: 0.5 }), 1);
  });
});

/** Times as fast as FP16 without drafts, on batches of equal requests that are all there from the start. */
function speedup(
  profile: string,
  batch: number,
  tokens: number,
  settings: Partial<SimulationOptions>,
): number {
  const trace = closedBatch(batch, tokens, tokens);
  const ms = (changed: Partial<SimulationOptions>) =>
    simulateTrace(trace, { profile: findProfile(profile), maxNumSeqs: 256, ...changed }).simulatedMs;
  return ms({}) / ms(settings);
}

/** @param tolerance share of the measured figure */
function near(simulated: number, measured: number, tolerance: number): void {
  assert.ok(Math.abs(simulated / measured - 1) < tolerance, `${simulated}, measured ${measured}`);
}

describe('the server of the tasks', () => {
  for (const profile of new Set(Object.values(SERVE_TASKS).map((task) => task.profile))) {
    it(`gains by INT8 what an A100 was measured to gain (${profile})`, () => {
      // LLM-Inference-Bench, Llama-3-8B with TensorRT-LLM, 1,024 tokens in and out: INT8 weights over FP16.
      for (const [batch, measured] of [
        [1, 1.42],
        [16, 1.39],
        [64, 1.47],
      ] as const) {
        near(speedup(profile, batch, 1024, { weights: 'INT8' }), measured, 0.05);
      }
    });

    it(`gains by drafts about what is published of EAGLE with three draft tokens (${profile})`, () => {
      near(speedup(profile, 1, 256, { speculationDepth: 3 }), 1.96, 0.1);
      near(speedup(profile, 128, 256, { speculationDepth: 3 }), 1.21, 0.1);
    });
  }
});
