import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EnvironmentError, type StepResult } from '@servegym/openenv/definition';
import { splitOfSeed } from '../splits.ts';
import { llmserve } from './llmserve.ts';
import {
  DEFAULT_ACTION,
  type ServeObservation,
  serveActionSchema,
  serveStateSchema,
  TASK_IDS,
} from './schema.ts';
import type { WindowReport } from './window-metrics.ts';

const codeOf = (code: string) => (error: unknown) => error instanceof EnvironmentError && error.code === code;

describe('the llmserve environment', () => {
  it('starts the easiest task when nothing is asked for', async () => {
    const { observation, reward, done } = await llmserve.definition().create().reset({});
    assert.equal(observation.task_id, 'static_workload');
    assert.equal(reward, null);
    assert.equal(done, false);
    assert.equal(observation.step_index, 0);
  });

  it('ends after the windows of its task, and not before', async () => {
    for (const task_id of TASK_IDS) {
      const environment = llmserve.definition().create();
      let answer: StepResult<ServeObservation> = await environment.reset({ task_id, seed: 1 });
      let steps = 0;
      while (!answer.done) {
        answer = await environment.step(DEFAULT_ACTION);
        steps++;
        assert.equal(answer.observation.step_index, steps);
      }
      assert.equal(steps, llmserve.definition().tasks?.find((task) => task.id === task_id)?.windows);
      assert.equal(environment.state().done, true);
      assert.throws(() => environment.step(DEFAULT_ACTION), codeOf('EPISODE_OVER'));
    }
  });

  it('keeps totals in its state', async () => {
    const environment = llmserve.definition().create();
    await environment.reset({ task_id: 'bursty_workload', seed: 3 });
    let sum = 0;
    for (let i = 0; i < 10; i++) sum += (await environment.step(DEFAULT_ACTION)).reward ?? 0;
    const state = serveStateSchema.parse(environment.state());
    assert.equal(state.cumulative_reward, sum);
    assert.equal(state.elapsed_simulated_time_s, 50);
    assert.equal(state.task_id, 'bursty_workload');
    assert.equal(state.seed, 3);
    assert.ok(state.total_requests_served > 100);
  });

  it('refuses what it cannot do, with a code', () => {
    assert.throws(() => llmserve.definition().create().step(DEFAULT_ACTION), codeOf('NOT_RESET'));
    assert.throws(() => llmserve.definition().create().reset({ task_id: 'nope' }), codeOf('UNKNOWN_TASK'));
    for (const seed of [-1, 0.5, 2 ** 53, Number.NaN]) {
      assert.throws(() => llmserve.definition().create().reset({ seed }), codeOf('INVALID_SEED'));
    }
  });

  it('has no room in its action for what it does not know', () => {
    for (const wrong of [
      { ...DEFAULT_ACTION, batch_cap: 0 },
      { ...DEFAULT_ACTION, batch_cap: 513 },
      { ...DEFAULT_ACTION, batch_cap: 1.5 },
      { ...DEFAULT_ACTION, kv_budget_fraction: 0.05 },
      { ...DEFAULT_ACTION, kv_budget_fraction: Number.NaN },
      { ...DEFAULT_ACTION, speculation_depth: 9 },
      { ...DEFAULT_ACTION, quantization_tier: 'FP4' },
      { ...DEFAULT_ACTION, prefill_decode_split: 'yes' },
      { ...DEFAULT_ACTION, unknown: 1 },
    ]) {
      assert.equal(serveActionSchema.safeParse(wrong).success, false, JSON.stringify(wrong));
    }
  });

  it('lists its episodes as splits that share no seed, and plays any of them', async () => {
    const seen = new Map<number, string>();
    for (const { name, type, size, task } of llmserve.definition().splits ?? []) {
      for (const index of [0, 1, 2, Math.floor(size / 2), size - 1]) {
        const options = task(index);
        const { observation } = await llmserve.definition().create().reset(options);
        assert.equal(observation.task_id, options.task_id);
        const seed = options.seed as number;
        assert.equal(seen.get(seed) ?? type, type, `${name} ${index}`);
        assert.equal(splitOfSeed(seed), type);
        seen.set(seed, type);
      }
      assert.equal(new Set([0, 1, 2].map((index) => JSON.stringify(task(index)))).size, 3);
    }
    assert.deepEqual(
      llmserve.definition().splits?.map(({ name }) => name),
      ['train', 'validation', 'test', 'shifted'],
    );
  });

  it('explains each window in its metadata', async () => {
    const environment = llmserve.definition().create();
    await environment.reset({ task_id: 'adversarial_multitenant', seed: 1 });
    const { metadata, reward } = await environment.step(DEFAULT_ACTION);
    const components = Object.values(metadata?.reward_components as Record<string, number>);
    assert.ok(Math.abs(components.reduce((sum, part) => sum + part, 0) - (reward ?? 0)) < 1e-12);
    assert.deepEqual(Object.keys(metadata?.slo as object), ['interactive', 'batch', 'best_effort']);
    assert.doesNotThrow(() => JSON.stringify(metadata));
  });

  it('has in its metadata what constrained learning and people by class ask for', async () => {
    const environment = llmserve.definition().create();
    await environment.reset({ task_id: 'adversarial_multitenant', seed: 1 });
    const action = { ...DEFAULT_ACTION, quantization_tier: 'INT4' } as const;
    for (let window = 0; window < 30; window++) {
      const { metadata, observation } = await environment.step(action);
      const { classes, quality, slo_cost, slo, events } = metadata as unknown as WindowReport;
      assert.ok(slo_cost >= 0 && slo_cost <= 1);
      assert.equal(slo_cost, 1 - observation.slo_compliance_rate);
      assert.ok(quality > 0.9 && quality < 1, `${quality}`);
      const arrived = classes.reduce((sum, each) => sum + each.arrived, 0);
      assert.ok(Math.abs(arrived - 5 * observation.request_arrival_rate) < 1e-9);
      for (const each of classes) {
        assert.ok(each.ttft_p99_ms >= each.ttft_p50_ms && slo[each.name].ttft_ms > 0);
        assert.ok(each.slo_compliance === null || (each.slo_compliance >= 0 && each.slo_compliance <= 1));
      }
      if (window === 0) assert.ok(events.some(({ kind }) => kind === 'reload'));
    }
  });
});
