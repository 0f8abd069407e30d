import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { llmserve, type ServeAction, ServeEpisode, type ServeObservation } from '@servegym/environments';
import { findProfile } from '@servegym/profiles';
import { HEURISTIC_START, heuristicPolicy } from './rule-policies.ts';

/** A window in which no rule applies to the configuration `inForce`. */
const calm: ServeObservation = {
  queue_depth: 8,
  active_requests: 40,
  kv_cache_occupancy: 0.7,
  mean_prompt_length: 500,
  p50_ttft_ms: 100,
  p99_ttft_ms: 200,
  p50_itl_ms: 20,
  throughput_tps: 1000,
  slo_compliance_rate: 0.95,
  gpu_memory_used_gb: 30,
  estimated_cost_per_1k: 0.001,
  request_arrival_rate: 6,
  spec_acceptance_rate: 0,
  eviction_events: 0,
  step_index: 1,
  quality_value: 8,
  task_id: 'static_workload',
  relative: new ServeEpisode(llmserve.tasks.shipped.static_workload, 0).observation().relative,
  server: llmserve.describeServer(
    llmserve.tasks.shipped.static_workload,
    findProfile(llmserve.tasks.shipped.static_workload.profile),
  ),
};
const inForce: ServeAction = { ...HEURISTIC_START, speculation_depth: 4, priority_routing: true };

function react(
  seen: Partial<ServeObservation>,
  { previous = inForce, taskId = 'static_workload' }: { previous?: ServeAction; taskId?: string } = {},
): ServeAction {
  const policy = heuristicPolicy();
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
    const policy = heuristicPolicy();
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
    const previous: ServeAction = { ...inForce, batch_cap: 50, quantization_tier: 'INT4' };
    const next = react({ queue_depth: 13 }, { previous });
    assert.equal(next.batch_cap, 66);
    assert.equal(next.quantization_tier, 'INT4');
  });

  it('changes nothing after a window that served nobody', () => {
    const loading = { throughput_tps: 0, queue_depth: 500, eviction_events: 40, slo_compliance_rate: 0 };
    assert.deepEqual(react(loading), inForce);
  });

  describe('batching (Orca)', () => {
    const cap = (seen: Partial<ServeObservation>, batch_cap: number) =>
      react(seen, { previous: { ...inForce, batch_cap } }).batch_cap;

    it('adds half of a queue that exceeds a quarter of the cap, and at least 16', () => {
      assert.equal(cap({ queue_depth: 26 }, 100), 116);
      assert.equal(cap({ queue_depth: 71 }, 100), 136);
      assert.equal(cap({ queue_depth: 25 }, 100), 100);
    });
    it('heeds the queue before latency', () => {
      assert.equal(cap({ slo_compliance_rate: 0.5, p50_itl_ms: 90, queue_depth: 500 }, 128), 378);
    });
    it('takes a quarter off when requests miss their objectives because tokens come too slowly', () => {
      // The interactive objective of the task is 26 ms a token.
      assert.equal(cap({ slo_compliance_rate: 0.84, p50_itl_ms: 27 }, 128), 96);
      assert.equal(cap({ slo_compliance_rate: 0.84, p50_itl_ms: 26 }, 128), 128);
      assert.equal(cap({ slo_compliance_rate: 0.85, p50_itl_ms: 27 }, 128), 128);
    });
    it('stays between 16 and 512', () => {
      assert.equal(cap({ slo_compliance_rate: 0, p50_itl_ms: 90, queue_depth: 0 }, 18), 16);
      assert.equal(cap({ queue_depth: 900 }, 505), 512);
    });
  });

  describe('memory (vLLM)', () => {
    const budget = (seen: Partial<ServeObservation>, kv_budget_fraction: number) =>
      react(seen, { previous: { ...inForce, kv_budget_fraction } }).kv_budget_fraction;

    // A GPU of the task's server has 39.4 GiB, which is 42.3 GB; 92 % are 38.9.
    it('gives way when the GPU is full, whatever the pool would need', () => {
      assert.equal(budget({ gpu_memory_used_gb: 39, eviction_events: 3 }, 0.7), 0.6);
      assert.equal(budget({ gpu_memory_used_gb: 38.9 }, 0.7), 0.7);
    });
    it('grows a pool that preempts or is nearly full', () => {
      assert.equal(budget({ eviction_events: 1 }, 0.3), 0.45);
      assert.equal(budget({ kv_cache_occupancy: 0.86 }, 0.3), 0.45);
    });
    it('gives back what lies idle', () => {
      assert.equal(budget({ kv_cache_occupancy: 0.39 }, 0.5), 0.4);
      assert.equal(budget({ kv_cache_occupancy: 0.4 }, 0.5), 0.5);
    });
    it('stays between 0.1 and 1', () => {
      assert.equal(budget({ kv_cache_occupancy: 0 }, 0.1), 0.1);
      assert.equal(budget({ kv_cache_occupancy: 1 }, 0.95), 1);
    });
  });

  describe('adaptation (Decima)', () => {
    it('quantizes under a heavy load, and stays there', () => {
      const tier = (seen: Partial<ServeObservation>, previous = inForce) =>
        react(seen, { previous }).quantization_tier;
      assert.equal(tier({ request_arrival_rate: 13, mean_prompt_length: 500 }), 'INT8');
      assert.equal(tier({ request_arrival_rate: 12, mean_prompt_length: 500 }), 'FP16');
      assert.equal(tier({ queue_depth: 41 }), 'INT8');
      assert.equal(tier({ queue_depth: 40 }), 'FP16');
      const light = { request_arrival_rate: 1, queue_depth: 0, active_requests: 1 };
      assert.equal(tier(light, { ...inForce, quantization_tier: 'INT8' }), 'INT8');
    });
    it('drafts deeper the fewer run', () => {
      const depths = [4, 16, 17, 48, 100, 200, 900].map(
        (active_requests) => react({ active_requests }).speculation_depth,
      );
      assert.deepEqual(depths, [6, 6, 4, 4, 3, 2, 1]);
    });
    it('splits for long prompts, and mixes again for short ones', () => {
      const split: ServeAction = { ...inForce, prefill_decode_split: true };
      assert.equal(react({ mean_prompt_length: 1501 }).prefill_decode_split, true);
      assert.equal(react({ mean_prompt_length: 1200 }).prefill_decode_split, false);
      assert.equal(react({ mean_prompt_length: 1200 }, { previous: split }).prefill_decode_split, true);
      assert.equal(react({ mean_prompt_length: 999 }, { previous: split }).prefill_decode_split, false);
    });
    it('does not read a window without arrivals as short prompts', () => {
      const split: ServeAction = { ...inForce, prefill_decode_split: true };
      const idle = { request_arrival_rate: 0, mean_prompt_length: 0 };
      assert.equal(react(idle, { previous: split }).prefill_decode_split, true);
    });
    it('routes by priority while anybody waits', () => {
      assert.equal(react({ queue_depth: 1 }).priority_routing, true);
      assert.equal(react({ queue_depth: 0 }).priority_routing, false);
    });
  });
});
