import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ServeAction, ServeObservation } from '@servegym/environments';
import { HEURISTIC_START, HeuristicPolicy } from './heuristic-policy.ts';

/** A window in which no rule applies to the configuration `inForce`. */
const calm: ServeObservation = {
  queue_depth: 10,
  active_requests: 20,
  kv_cache_occupancy: 0.7,
  mean_prompt_length: 500,
  p50_ttft_ms: 100,
  p99_ttft_ms: 200,
  p50_itl_ms: 20,
  throughput_tps: 1000,
  slo_compliance_rate: 0.95,
  gpu_memory_used_gb: 30,
  estimated_cost_per_1k: 0.001,
  request_arrival_rate: 15,
  spec_acceptance_rate: 0,
  eviction_events: 0,
  step_index: 1,
  task_id: 'static_workload',
};
const inForce: ServeAction = { ...HEURISTIC_START, batch_cap: 32, kv_budget_fraction: 0.7 };

function react(
  seen: Partial<ServeObservation>,
  { previous = inForce, taskId = 'static_workload' }: { previous?: ServeAction; taskId?: string } = {},
): ServeAction {
  const policy = new HeuristicPolicy();
  policy.reset({ taskId, seed: 0 });
  return policy.act({
    observation: { ...calm, ...seen },
    reward: 0.5,
    previousAction: previous,
    stepIndex: 1,
  });
}

describe('heuristic', () => {
  it('starts with cap 32, KV 0.70, no speculation, FP16', () => {
    const policy = new HeuristicPolicy();
    policy.reset({ taskId: 'static_workload', seed: 0 });
    const first = policy.act({ observation: calm, reward: null, previousAction: inForce, stepIndex: 0 });
    assert.deepEqual(first, {
      batch_cap: 32,
      kv_budget_fraction: 0.7,
      speculation_depth: 0,
      quantization_tier: 'FP16',
      prefill_decode_split: false,
      priority_routing: false,
    });
  });

  it('keeps every knob when no rule applies', () => {
    assert.deepEqual(react({}), inForce);
  });

  it('builds on the configuration in force, whoever chose it', () => {
    const previous: ServeAction = {
      ...inForce,
      batch_cap: 100,
      speculation_depth: 7,
      quantization_tier: 'INT4',
    };
    const next = react({ queue_depth: 80 }, { previous });
    assert.equal(next.batch_cap, 116);
    assert.equal(next.speculation_depth, 7);
    assert.equal(next.quantization_tier, 'INT4');
  });

  describe('batching (Orca)', () => {
    const cap = (seen: Partial<ServeObservation>, batch_cap: number) =>
      react(seen, { previous: { ...inForce, batch_cap } }).batch_cap;

    it('takes 32 off when SLO compliance falls below 0.85', () => {
      assert.equal(cap({ slo_compliance_rate: 0.84 }, 128), 96);
      assert.equal(cap({ slo_compliance_rate: 0.85, queue_depth: 64 }, 128), 128);
    });
    it('heeds the queue before latency', () => {
      assert.equal(cap({ slo_compliance_rate: 0.5, queue_depth: 500 }, 128), 144);
    });
    it('adds 16 when the queue exceeds 0.7 of the cap', () => {
      assert.equal(cap({ queue_depth: 71 }, 100), 116);
      assert.equal(cap({ queue_depth: 70 }, 100), 100);
    });
    it('takes 16 off when the queue is under 0.2 of the cap, down to 16', () => {
      assert.equal(cap({ queue_depth: 19 }, 100), 84);
      assert.equal(cap({ queue_depth: 20 }, 100), 100);
      assert.equal(cap({ queue_depth: 0 }, 16), 16);
    });
    it('stays between 16 and 512', () => {
      assert.equal(cap({ slo_compliance_rate: 0 }, 20), 16);
      assert.equal(cap({ queue_depth: 0 }, 20), 16);
      assert.equal(cap({ queue_depth: 900 }, 505), 512);
    });
  });

  describe('memory (vLLM)', () => {
    const budget = (seen: Partial<ServeObservation>, kv_budget_fraction: number) =>
      react(seen, { previous: { ...inForce, kv_budget_fraction } }).kv_budget_fraction;

    // A GPU of the tasks' server has 39.4 GiB, which is 42.3 GB.
    it('goes to 0.60 after evictions, however full the GPU is', () => {
      assert.equal(budget({ eviction_events: 1, gpu_memory_used_gb: 10 }, 0.9), 0.6);
    });
    it('takes 0.10 off when the GPU is over 85 % full and adds 0.10 when it is under half', () => {
      assert.equal(budget({ gpu_memory_used_gb: 36.1 }, 0.7), 0.6);
      assert.equal(budget({ gpu_memory_used_gb: 35.9 }, 0.7), 0.7);
      assert.equal(budget({ gpu_memory_used_gb: 21.2 }, 0.7), 0.7);
      assert.equal(budget({ gpu_memory_used_gb: 21.1 }, 0.7), 0.8);
    });
    it('stays between 0.1 and 1', () => {
      assert.equal(budget({ gpu_memory_used_gb: 40 }, 0.15), 0.1);
      assert.equal(budget({ gpu_memory_used_gb: 10 }, 0.95), 1);
    });
  });

  describe('adaptation (Decima)', () => {
    it('quantizes above 25 arrivals a second, goes back below 8', () => {
      const int8: ServeAction = { ...inForce, quantization_tier: 'INT8' };
      assert.equal(react({ request_arrival_rate: 26 }).quantization_tier, 'INT8');
      assert.equal(react({ request_arrival_rate: 15 }, { previous: int8 }).quantization_tier, 'INT8');
      assert.equal(react({ request_arrival_rate: 7 }, { previous: int8 }).quantization_tier, 'FP16');
    });
    it('speculates on short prompts only', () => {
      const deep: ServeAction = { ...inForce, speculation_depth: 4 };
      assert.equal(react({ mean_prompt_length: 199 }).speculation_depth, 4);
      assert.equal(react({ mean_prompt_length: 500 }, { previous: deep }).speculation_depth, 4);
      assert.equal(react({ mean_prompt_length: 801 }, { previous: deep }).speculation_depth, 0);
    });
    it('does not read a window without arrivals as short prompts', () => {
      assert.equal(react({ request_arrival_rate: 0, mean_prompt_length: 0 }).speculation_depth, 0);
    });
    it('splits while the queue exceeds half the cap', () => {
      assert.equal(react({ queue_depth: 17 }).prefill_decode_split, true);
      const split: ServeAction = { ...inForce, prefill_decode_split: true };
      assert.equal(react({ queue_depth: 16 }, { previous: split }).prefill_decode_split, false);
    });
    it('routes by priority on the adversarial task when prompts exceed 2,000 tokens', () => {
      const long = { mean_prompt_length: 2001 };
      assert.equal(react(long, { taskId: 'adversarial_multitenant' }).priority_routing, true);
      assert.equal(
        react({ mean_prompt_length: 2000 }, { taskId: 'adversarial_multitenant' }).priority_routing,
        false,
      );
      assert.equal(react(long, { taskId: 'bursty_workload' }).priority_routing, false);
    });
  });
});
