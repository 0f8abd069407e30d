import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { anyGymAction } from './gym-actions.fixture.ts';
import { GymEpisode } from './gym-episode.ts';
import { GYM_TASK_IDS, GYM_TASKS, type GymTaskId } from './gym-tasks.ts';
import { GymWorld, shippedWorld } from './gym-world.ts';
import { GYM_DEFAULT_ACTION, type GymAction, gymObservationSchema, QUEUE_CAPACITY } from './schema.ts';
import { tableOf, validRows } from './table/table-rows.fixture.ts';
import { TraceTable } from './table/trace-table.ts';

const world = await shippedWorld();

function begin(id: GymTaskId, seed = 1): GymEpisode {
  return new GymEpisode(GYM_TASKS[id], seed, world);
}

function play(id: GymTaskId, change: Partial<GymAction>, steps = 200, seed = 1): GymEpisode {
  const episode = begin(id, seed);
  for (let step = 0; step < steps; step++) episode.step({ ...GYM_DEFAULT_ACTION, ...change });
  return episode;
}

const sessions = fc.record({
  id: fc.constantFrom(...GYM_TASK_IDS),
  seed: fc.nat(),
  actions: fc.array(anyGymAction, { minLength: 1, maxLength: 60 }),
});

describe('an episode of inferencegym', () => {
  it('loses no request and serves none twice', () => {
    fc.assert(
      fc.property(sessions, ({ id, seed, actions }) => {
        const episode = begin(id, seed);
        for (const action of actions) {
          episode.step(action);
          const { arrived, served, rejected, failed } = episode.totals;
          assert.equal(arrived, served + rejected + failed + episode.queueDepth);
          assert.ok(episode.queueDepth <= QUEUE_CAPACITY);
        }
      }),
      { numRuns: 40 },
    );
  });

  it('shows every figure within its range, and rewards within [-1, 1]', () => {
    fc.assert(
      fc.property(sessions, ({ id, seed, actions }) => {
        const episode = begin(id, seed);
        gymObservationSchema.parse(episode.observation());
        for (const action of actions) {
          const reward = episode.step(action);
          assert.ok(reward >= -1 && reward <= 1);
          gymObservationSchema.parse(episode.observation());
          for (const value of Object.values(episode.metrics)) assert.ok(Number.isFinite(value) && value >= 0);
          assert.ok(episode.metrics.ttft_p99_ms >= episode.metrics.ttft_p50_ms * 0.5);
        }
      }),
      { numRuns: 40 },
    );
  });

  it('is the same each time it is played', () => {
    fc.assert(
      fc.property(sessions, ({ id, seed, actions }) => {
        const tell = () => {
          const episode = begin(id, seed);
          return actions.map((action) => [episode.step(action), episode.observation()]);
        };
        assert.deepEqual(tell(), tell());
      }),
      { numRuns: 10 },
    );
  });

  it('serves what the throughput of the table allows, so that the queue follows the action', () => {
    const queues = [1, 8, 32, 128].map(
      (batch_size) => play(1, { batch_size, kv_budget: 0.9 }, 40).queueDepth,
    );
    for (let i = 1; i < queues.length; i++) assert.ok(queues[i] < queues[i - 1], String(queues));
    const overloaded = play(1, { batch_size: 16 }, 60);
    const before = overloaded.queueDepth;
    assert.ok(before > 200);
    for (let step = 0; step < 40; step++) {
      overloaded.step({ ...GYM_DEFAULT_ACTION, batch_size: 256, kv_budget: 0.8 });
    }
    assert.ok(overloaded.queueDepth < before, 'a larger batch drains the queue');
  });

  it('takes longer to the first token the longer the queue', () => {
    const short = play(1, { batch_size: 256, kv_budget: 0.9 }, 50).observation();
    const long = play(1, { batch_size: 8 }, 50).observation();
    assert.ok(short.ttft_p50 < 500 && long.ttft_p50 === 5000);
    assert.ok(short.slo_violation_rate < long.slo_violation_rate);
  });

  it('counts those who wait for too long as violated, though nobody is served', () => {
    const stuck = play(3, { batch_size: 1 }, 30);
    assert.ok(stuck.observation().slo_violation_rate > 0.6);
  });

  it('keeps knobs that are not active at their defaults', () => {
    const wild: GymAction = {
      kv_budget: 0.5,
      spec_length: 8,
      batch_size: 64,
      prefill_disagg: true,
      quant_tier: 2,
    };
    const masked = { ...wild, spec_length: 0, prefill_disagg: false, quant_tier: 0 } as const;
    const [asked, played] = [begin(1), begin(1)];
    for (let step = 0; step < 20; step++) assert.equal(asked.step(wild), played.step(masked));
    assert.equal(asked.action.quant_tier, 0);
    const second = play(2, wild, 1);
    assert.deepEqual(
      [second.action.spec_length, second.action.prefill_disagg, second.action.quant_tier],
      [8, false, 0],
    );
    const third = play(3, wild, 1);
    assert.deepEqual(
      [third.action.spec_length, third.action.prefill_disagg, third.action.quant_tier],
      [8, true, 2],
    );
  });

  it('goes out of memory above 40 GB: reads 40, fails the batch and starts anew', () => {
    const episode = play(1, { batch_size: 64, kv_budget: 0.9 }, 20);
    const { served } = episode.totals;
    const reward = episode.step({ ...GYM_DEFAULT_ACTION, batch_size: 512, kv_budget: 1 });
    assert.equal(episode.outOfMemory, true);
    assert.equal(episode.metrics.gpu_memory_gb, 40);
    assert.equal(episode.metrics.tokens_per_sec, 0);
    assert.equal(episode.terms.violations, 5);
    assert.equal(reward, -1);
    const { reloadSeconds } = world.times.table.conditions;
    for (let step = 0; step < reloadSeconds; step++) {
      episode.step({ ...GYM_DEFAULT_ACTION, batch_size: 64, kv_budget: 0.9 });
      assert.equal(episode.metrics.tokens_per_sec, 0, `step ${step} of the restart`);
    }
    assert.equal(episode.totals.served, served);
    episode.step({ ...GYM_DEFAULT_ACTION, batch_size: 64, kv_budget: 0.9 });
    assert.ok(episode.metrics.tokens_per_sec > 0);
  });

  it('has the memory that the table says', () => {
    const small = new GymWorld(
      new TraceTable(tableOf(validRows(), { memoryLimitGb: 30, specAcceptRates: null })),
    );
    const episode = new GymEpisode(GYM_TASKS[1], 1, small);
    episode.step(GYM_DEFAULT_ACTION);
    assert.deepEqual([episode.outOfMemory, episode.metrics.gpu_memory_gb], [true, 30]);
  });

  it('serves nobody while the weights or the division of the GPUs change', () => {
    for (const change of [{ quant_tier: 1 }, { prefill_disagg: true }] as const) {
      const episode = play(3, {}, 10);
      const { served } = episode.totals;
      for (let step = 0; step < 5; step++) episode.step({ ...GYM_DEFAULT_ACTION, ...change });
      assert.equal(episode.totals.served, served);
      episode.step({ ...GYM_DEFAULT_ACTION, ...change });
      assert.ok(episode.totals.served > served);
    }
  });

  it('preempts, and computes again, when the pool shrinks below what runs', () => {
    const [kept, shrunk] = [0.9, 0.2].map((kv_budget) => {
      const episode = play(1, { batch_size: 256, kv_budget: 0.9 }, 50);
      episode.step({ ...GYM_DEFAULT_ACTION, batch_size: 256, kv_budget });
      return episode.metrics;
    });
    assert.equal(kept.eviction_events, 0);
    assert.ok(shrunk.eviction_events > 20);
    assert.ok(shrunk.tokens_per_sec < kept.tokens_per_sec);
  });

  it('accepts draft tokens as the task and the prompts let it', () => {
    const rates = [1, 2, 4, 8].map(
      (spec_length) => play(2, { spec_length } as Partial<GymAction>, 1).observation().spec_accept_rate,
    );
    for (let i = 1; i < rates.length; i++) assert.ok(rates[i] < rates[i - 1]);
    assert.ok(rates[0] < 0.65 && rates[0] > 0.4);
    assert.equal(play(2, {}, 1).observation().spec_accept_rate, 0);
  });

  it('costs by the second and by the memory held, whatever is served', () => {
    const idle = play(1, { batch_size: 1, kv_budget: 1 }, 20).totals.cost;
    const busy = play(1, { batch_size: 64, kv_budget: 1 }, 20).totals.cost;
    const small = play(1, { batch_size: 64, kv_budget: 0.5 }, 20).totals.cost;
    assert.ok(Math.abs(busy / idle - 1) < 0.05);
    assert.ok(small < 0.8 * busy);
  });
});
