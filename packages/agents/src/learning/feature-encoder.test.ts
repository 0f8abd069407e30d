import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { llmserve, type ServeAction, ServeEpisode, type ServeObservation } from '@servegym/environments';
import { findProfile } from '@servegym/profiles';
import fc from 'fast-check';
import { SERVE_LEARNER } from './learners.ts';
import { FeatureEncoder } from './learning-environment.ts';

const task = llmserve.tasks.shipped.static_workload;
const codec = SERVE_LEARNER.codec({ ...task, defaultAction: llmserve.defaultAction });
const binsOf = ({ headSizes }: Pick<typeof codec, 'headSizes'>) =>
  fc.tuple(...headSizes.map((size) => fc.nat(size - 1)));

describe('the bins of a serving action', () => {
  it('decode to valid actions, and those encode to the same bins', () => {
    fc.assert(
      fc.property(binsOf(codec), (row) => {
        const action = codec.decode(row);
        llmserve.actionSchema.parse(action);
        assert.deepEqual(codec.encode(action), row);
      }),
    );
  });

  it('have the default action exactly', () => {
    assert.deepEqual(codec.decode(codec.encode(llmserve.defaultAction)), llmserve.defaultAction);
  });

  it('take the nearest of an action between them', () => {
    const action = {
      ...llmserve.defaultAction,
      batch_cap: 440,
      kv_budget_fraction: 0.44,
      speculation_depth: 7,
    };
    const decoded = codec.decode(codec.encode(action));
    assert.equal(decoded.batch_cap, 384);
    assert.equal(decoded.kv_budget_fraction, 0.4);
    assert.equal(decoded.speculation_depth, 6);
    assert.equal(codec.decode(codec.encode({ ...action, batch_cap: 1 })).batch_cap, 4);
  });

  it('have a head for each knob that a task leaves free, and the default of the others', () => {
    const masks = fc.subarray([...llmserve.knobs], { minLength: 1, maxLength: llmserve.knobs.length - 1 });
    // A default that is no bin shows that a masked knob goes through none.
    const defaultAction = { ...llmserve.defaultAction, batch_cap: 100, kv_budget_fraction: 0.33 };
    fc.assert(
      fc.property(
        masks.chain((maskedKnobs) => {
          const masked = SERVE_LEARNER.codec({ ...task, defaultAction, maskedKnobs });
          return fc.record({ maskedKnobs: fc.constant(maskedKnobs), row: binsOf(masked) });
        }),
        ({ maskedKnobs, row }) => {
          const masked = SERVE_LEARNER.codec({ ...task, defaultAction, maskedKnobs });
          const action = masked.decode(row);
          for (const knob of maskedKnobs) assert.equal(action[knob], defaultAction[knob]);
          assert.deepEqual(masked.encode(action), row);
          assert.deepEqual(Object.keys(masked.bins), llmserve.activeKnobs({ maskedKnobs }));
          assert.deepEqual(
            masked.headSizes,
            Object.values(masked.bins).map((bins) => bins.length),
          );
        },
      ),
    );
  });
});

const quiet: ServeObservation = {
  queue_depth: 0,
  active_requests: 0,
  kv_cache_occupancy: 0,
  mean_prompt_length: 0,
  p50_ttft_ms: 0,
  p99_ttft_ms: 0,
  p50_itl_ms: 0,
  throughput_tps: 0,
  slo_compliance_rate: 1,
  gpu_memory_used_gb: 20,
  estimated_cost_per_1k: 0.001,
  request_arrival_rate: 0,
  spec_acceptance_rate: 0,
  eviction_events: 0,
  step_index: 0,
  quality_value: 8,
  task_id: 'static_workload',
  relative: new ServeEpisode(llmserve.tasks.shipped.static_workload, 0).observation().relative,
  server: llmserve.describeServer(
    llmserve.tasks.shipped.static_workload,
    findProfile(llmserve.tasks.shipped.static_workload.profile),
  ),
};

function encode(
  encoder: FeatureEncoder,
  seen: Partial<ServeObservation> = {},
  previousAction: ServeAction = llmserve.defaultAction,
): number[] {
  const features = new Float32Array(llmserve.features.length).fill(Number.NaN);
  encoder.encode({ ...quiet, ...seen }, previousAction, features);
  return [...features];
}

/** For how long the weights have been kept, which grows from window to window. */
const KEPT = llmserve.features.findIndex(({ name }) => name === 'weights_kept');
const traffic = (features: readonly number[]) => features.filter((_, at) => at !== KEPT);

describe('the features of a window', () => {
  it('fills every feature with a finite number, whatever the window', () => {
    const busy = {
      queue_depth: 100_000,
      mean_prompt_length: 30_000,
      p99_ttft_ms: 1e7,
      request_arrival_rate: 500,
      estimated_cost_per_1k: 100,
      eviction_events: 10_000,
    };
    for (const seen of [{}, busy]) {
      const features = encode(new FeatureEncoder(llmserve.features), seen);
      assert.ok(
        features.every((value) => Number.isFinite(value) && Math.abs(value) < 30),
        `${features}`,
      );
    }
  });

  it('lets every field of the observation and every knob in force show', () => {
    const reference = encode(new FeatureEncoder(llmserve.features));
    // The price of quality goes with the phase, which the traffic tells; policies of any server see what a precision costs.
    const { task_id: _, server: __, relative: ___, quality_value: ____, ...numbers } = quiet;
    for (const [field, value] of Object.entries(numbers as Record<string, number>)) {
      const changed = encode(new FeatureEncoder(llmserve.features), {
        [field]: value === 1 ? 0.5 : value + 0.5,
      });
      assert.notDeepEqual(changed, reference, field);
    }
    const knobs: Partial<ServeAction>[] = [
      { batch_cap: 64 },
      { kv_budget_fraction: 0.5 },
      { speculation_depth: 3 },
      { quantization_tier: 'INT8' },
      { quantization_tier: 'INT4' },
      { prefill_decode_split: true },
      { priority_routing: true },
    ];
    const seen = new Set([JSON.stringify(reference)]);
    for (const knob of knobs) {
      seen.add(
        JSON.stringify(
          encode(new FeatureEncoder(llmserve.features), {}, { ...llmserve.defaultAction, ...knob }),
        ),
      );
    }
    assert.equal(seen.size, knobs.length + 1);
  });

  it('compares the traffic to what it was, until a reset', () => {
    const encoder = new FeatureEncoder(llmserve.features);
    const calm = { request_arrival_rate: 5, mean_prompt_length: 200 };
    const first = encode(encoder, calm);
    assert.deepEqual(traffic(encode(encoder, calm)), traffic(first));
    const storm = encode(encoder, { request_arrival_rate: 50, mean_prompt_length: 200 });
    assert.notDeepEqual(traffic(encode(encoder, calm)), traffic(first));
    encoder.reset();
    assert.deepEqual(encode(encoder, calm), first);
    assert.notDeepEqual(
      encode(new FeatureEncoder(llmserve.features), { ...calm, request_arrival_rate: 50 }),
      storm,
    );
  });

  it('takes the prompts to be as they were in a window without arrivals', () => {
    const encoder = new FeatureEncoder(llmserve.features);
    const [a, b] = [encode(encoder, { mean_prompt_length: 300 }), encode(encoder, { mean_prompt_length: 0 })];
    assert.deepEqual(traffic(a!), traffic(b!));
  });

  it('tells for how many windows the weights have been what they are', () => {
    const encoder = new FeatureEncoder(llmserve.features);
    const kept = (tier: ServeAction['quantization_tier']) =>
      Math.expm1(encode(encoder, {}, { ...llmserve.defaultAction, quantization_tier: tier })[KEPT]!);
    const told = (['FP16', 'FP16', 'FP16', 'INT8', 'INT8', 'FP16'] as const).map(kept);
    assert.deepEqual(told.map(Math.round), [0, 1, 2, 0, 1, 0]);
  });
});
