import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EnvironmentError, type StepResult } from '@servegym/openenv/definition';
import { inferencegym, type StepInfo } from './environment.ts';
import { gymResetOptions } from './gym-tasks.ts';
import { GymWorld } from './gym-world.ts';
import {
  EPISODE_STEPS,
  GYM_DEFAULT_ACTION,
  type GymObservation,
  gymActionSchema,
  gymObservationSchema,
  gymStateSchema,
} from './schema.ts';
import { tableOf, validRows } from './table/table-rows.fixture.ts';
import { TraceTable } from './table/trace-table.ts';

const codeOf = (code: string) => (error: unknown) => error instanceof EnvironmentError && error.code === code;

describe('the inferencegym environment', () => {
  it('starts task 1 on seed 42 when nothing is asked for', async () => {
    const environment = inferencegym.definition().create();
    const { observation, reward, done } = await environment.reset({});
    gymObservationSchema.parse(observation);
    assert.deepEqual([reward, done, observation.timestep, observation.queue_depth], [null, false, 0, 0]);
    const { task_id, seed } = gymStateSchema.parse(environment.state());
    assert.deepEqual([task_id, seed], [1, 42]);
    assert.deepEqual(gymResetOptions.parse({}), { task_id: 1, seed: 42 });
  });

  it('shows the twelve fields in the order of InferenceGym', async () => {
    const { observation } = await inferencegym.definition().create().reset({});
    assert.deepEqual(Object.keys(observation), [
      'queue_depth',
      'mean_prompt_len',
      'arrival_rate',
      'kv_cache_occupancy',
      'ttft_p50',
      'tpot_p50',
      'slo_violation_rate',
      'gpu_memory_used_gb',
      'spec_accept_rate',
      'priority_distribution',
      'timestep',
      'cost_so_far',
    ]);
    assert.deepEqual(Object.keys(gymObservationSchema.shape), Object.keys(observation));
  });

  it('takes the id of a task as a number, as its digit and as its slug', async () => {
    for (const task_id of [2, '2', 'bursty_sharegpt']) {
      assert.equal(gymResetOptions.parse({ task_id }).task_id, 2);
      const environment = inferencegym.definition().create();
      await environment.reset({ task_id });
      assert.equal(environment.state().task_id, 2);
    }
  });

  it('ends after 200 steps, and not before', async () => {
    const environment = inferencegym.definition().create();
    let answer: StepResult<GymObservation> = await environment.reset({ task_id: 3, seed: 1 });
    let total = 0;
    let steps = 0;
    while (!answer.done) {
      answer = await environment.step(GYM_DEFAULT_ACTION);
      total += answer.reward ?? 0;
      steps++;
      assert.equal(answer.observation.timestep, steps);
    }
    assert.equal(steps, EPISODE_STEPS);
    const { cumulative_reward, done } = gymStateSchema.parse(environment.state());
    assert.deepEqual([cumulative_reward, done], [total, true]);
    assert.throws(() => environment.step(GYM_DEFAULT_ACTION), codeOf('EPISODE_OVER'));
  });

  it('refuses what it cannot do, with a code', async () => {
    assert.throws(() => inferencegym.definition().create().step(GYM_DEFAULT_ACTION), codeOf('NOT_RESET'));
    for (const task_id of [0, 4, 1.5, '04', 'nope', {}]) {
      await assert.rejects(
        async () => inferencegym.definition().create().reset({ task_id }),
        codeOf('UNKNOWN_TASK'),
      );
      assert.equal(gymResetOptions.safeParse({ task_id }).success, false);
    }
    for (const seed of [-1, 0.5, 2 ** 53, Number.NaN]) {
      await assert.rejects(
        async () => inferencegym.definition().create().reset({ seed }),
        codeOf('INVALID_SEED'),
      );
    }
    for (const config of [{ alpha: -1 }, { alpha: Number.NaN }, { gain: 1 }, 'alpha', [1]]) {
      await assert.rejects(
        async () => inferencegym.definition().create().reset({ config }),
        codeOf('INVALID_CONFIG'),
      );
      assert.equal(gymResetOptions.safeParse({ config }).success, false, JSON.stringify(config));
    }
  });

  it('takes integers sent as floats, enums as integers and booleans as 0 and 1, and nothing ambiguous', () => {
    assert.deepEqual(gymActionSchema.parse({}), GYM_DEFAULT_ACTION);
    const sent = JSON.parse(
      '{"kv_budget":1,"spec_length":4.0,"batch_size":64.0,"prefill_disagg":1,"quant_tier":"INT4"}',
    );
    assert.deepEqual(gymActionSchema.parse(sent), {
      kv_budget: 1,
      spec_length: 4,
      batch_size: 64,
      prefill_disagg: true,
      quant_tier: 2,
    });
    for (const wrong of [
      { kv_budget: 0.05 },
      { kv_budget: 1.01 },
      { kv_budget: Number.NaN },
      { kv_budget: Number.POSITIVE_INFINITY },
      { kv_budget: '1' },
      { spec_length: 3 },
      { spec_length: 16 },
      { batch_size: 0 },
      { batch_size: 513 },
      { batch_size: 31.5 },
      { prefill_disagg: 2 },
      { prefill_disagg: 'true' },
      { quant_tier: 3 },
      { quant_tier: 0.5 },
      { quant_tier: 'FP8' },
      { quant_tier: null },
      { batch_cap: 32 },
    ]) {
      assert.equal(gymActionSchema.safeParse(wrong).success, false, JSON.stringify(wrong));
    }
  });

  it('lets a reset override weights of the reward, each by itself', async () => {
    const play = async (config?: object) => {
      const environment = inferencegym.definition().create();
      await environment.reset({ task_id: 2, seed: 3, ...(config && { config }) });
      const { reward, metadata } = await environment.step({
        ...GYM_DEFAULT_ACTION,
        batch_size: 128,
        kv_budget: 0.5,
      });
      const { throughput, latency, violations, cost } = (metadata as unknown as StepInfo).reward_components;
      return { reward: reward!, throughput, latency, violations, cost };
    };
    const plain = await play();
    const sum = 0.4 * plain.throughput - 0.25 * plain.latency - 0.3 * plain.violations - 0.1 * plain.cost;
    assert.ok(Math.abs(plain.reward - sum) < 1e-12);
    const overridden = await play({ delta: 0 });
    assert.ok(Math.abs(overridden.reward - (plain.reward + 0.1 * plain.cost)) < 1e-12);
    assert.equal((await play({ alpha: 0, beta: 0, gamma: 0, delta: 10 })).reward, -1);
  });

  it('tells timestep, metrics, workload and the configuration in force beside each observation', async () => {
    const environment = inferencegym.definition().create();
    await environment.reset({ task_id: 1, seed: 1 });
    const { metadata } = await environment.step({ ...GYM_DEFAULT_ACTION, quant_tier: 2, batch_size: 50 });
    const info = metadata as unknown as StepInfo;
    assert.equal(info.timestep, 1);
    assert.deepEqual(Object.keys(info.metrics), [
      'ttft_p50_ms',
      'ttft_p99_ms',
      'tpot_ms',
      'tokens_per_sec',
      'gpu_memory_gb',
      'cost_per_1k',
      'spec_accept_rate',
      'eviction_events',
      'slo_violations',
    ]);
    assert.deepEqual(Object.keys(info.workload), [
      'arrival_rate',
      'mean_prompt_len',
      'prompt_len_bucket',
      'queue_depth',
      'priority_distribution',
      'is_burst',
      'phase',
    ]);
    assert.deepEqual(info.applied_action, { ...GYM_DEFAULT_ACTION, batch_size: 50 });
    assert.doesNotThrow(() => JSON.stringify(metadata));
  });

  it('plays a table of one’s own, measured against what that table allows', async () => {
    const world = new GymWorld(new TraceTable(tableOf(validRows())));
    const own = inferencegym.definition({ table: { world, hash: 'abcdef0123456789' } });
    assert.equal(own.version, `${inferencegym.version}+table.abcdef012345`);
    const environment = own.create();
    const first = await environment.reset({ task_id: 3, seed: 1 });
    assert.ok(Math.abs(first.observation.gpu_memory_used_gb - 36) < 1e-9);
    const actions = Array.from({ length: EPISODE_STEPS }, () => GYM_DEFAULT_ACTION);
    const { score, breakdown } = await own.grade!({ reset: { task_id: 1, seed: 1 }, actions });
    assert.ok(score > 0 && score < 1);
    assert.notEqual(breakdown.optimal_tokens_per_sec, undefined);
  });

  it('has its seeds in splits', () => {
    const [train, validation, test] = inferencegym.definition().splits!;
    assert.deepEqual([train.name, validation.name, test.name], ['train', 'validation', 'test']);
    assert.deepEqual(test.task(0), { task_id: 1, seed: 2_000_000 });
    assert.deepEqual(test.task(test.size - 1), { task_id: 3, seed: 2_099_999 });
  });
});
