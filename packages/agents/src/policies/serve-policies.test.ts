import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { llmserve, type ServeAction, ServeEpisode, type ServeObservation } from '@servegym/environments';
import fc from 'fast-check';
import { AGENTS } from '../registry.ts';

const { createPolicy, policies, planners } = AGENTS.llmserve;

const empty = new ServeEpisode(llmserve.tasks.shipped.static_workload, 0).observation();

const observation = fc.record<ServeObservation>({
  queue_depth: fc.nat(5000),
  active_requests: fc.nat(512),
  kv_cache_occupancy: fc.double({ min: 0, max: 1, noNaN: true }),
  mean_prompt_length: fc.double({ min: 0, max: 32_000, noNaN: true }),
  p50_ttft_ms: fc.double({ min: 0, max: 1e6, noNaN: true }),
  p99_ttft_ms: fc.double({ min: 0, max: 1e6, noNaN: true }),
  p50_itl_ms: fc.double({ min: 0, max: 1e4, noNaN: true }),
  throughput_tps: fc.double({ min: 0, max: 1e5, noNaN: true }),
  slo_compliance_rate: fc.double({ min: 0, max: 1, noNaN: true }),
  gpu_memory_used_gb: fc.double({ min: 0, max: 80, noNaN: true }),
  estimated_cost_per_1k: fc.double({ min: 0, max: 10, noNaN: true }),
  request_arrival_rate: fc.double({ min: 0, max: 500, noNaN: true }),
  spec_acceptance_rate: fc.double({ min: 0, max: 1, noNaN: true }),
  eviction_events: fc.nat(1000),
  step_index: fc.nat(200),
  quality_value: fc.double({ min: 0, max: 20, noNaN: true }),
  task_id: fc.constantFrom(...llmserve.tasks.shippedIds),
  relative: fc.record(
    Object.fromEntries(
      Object.keys(empty.relative).map((name) => [name, fc.double({ min: 0, max: 100, noNaN: true })]),
    ) as Record<keyof ServeObservation['relative'], fc.Arbitrary<number>>,
  ),
  server: fc.constant(empty.server),
});

function play(
  name: string,
  seed: number,
  taskId: string,
  seen: readonly ServeObservation[],
  start: ServeAction,
) {
  const policy = createPolicy(name);
  policy.reset({ taskId, seed });
  const actions: ServeAction[] = [];
  for (const [stepIndex, window] of seen.entries()) {
    actions.push(
      policy.act({
        observation: window,
        reward: stepIndex === 0 ? null : window.slo_compliance_rate,
        previousAction: actions.at(-1) ?? start,
        stepIndex,
      }),
    );
  }
  return actions;
}

const start: ServeAction = {
  batch_cap: 1,
  kv_budget_fraction: 0.1,
  speculation_depth: 8,
  quantization_tier: 'INT4',
  prefill_decode_split: true,
  priority_routing: true,
};

describe('every policy of the catalogue', () => {
  for (const { name } of policies.filter((policy) => !planners.includes(policy.name))) {
    it(`${name}: chooses valid actions, the same ones for the same episode`, () => {
      fc.assert(
        fc.property(
          fc.maxSafeNat(),
          fc.constantFrom(...llmserve.tasks.shippedIds),
          fc.array(observation, { minLength: 1, maxLength: 12 }),
          (seed, taskId, seen) => {
            const actions = play(name, seed, taskId, seen, start);
            for (const action of actions) llmserve.actionSchema.parse(action);
            assert.deepEqual(play(name, seed, taskId, seen, start), actions);
          },
        ),
        { numRuns: 50 },
      );
    });

    it(`${name}: a reset forgets the last episode`, () => {
      const seen = fc.sample(observation, { numRuns: 8, seed: 1 });
      const policy = createPolicy(name);
      const playWith = (seed: number) => {
        policy.reset({ taskId: 'bursty_workload', seed });
        return seen.map((window, stepIndex) =>
          policy.act({
            observation: window,
            reward: stepIndex === 0 ? null : 0.5,
            previousAction: start,
            stepIndex,
          }),
        );
      };
      const first = playWith(3);
      playWith(4);
      assert.deepEqual(playWith(3), first);
    });
  }

  it('goes by its catalogue name and says what it does', () => {
    for (const { name, title, description } of policies) {
      assert.equal(createPolicy(name).name, name);
      assert.ok(title.length > 0 && description.endsWith('.'));
    }
  });
});

describe('random', () => {
  it('draws differently for another seed', () => {
    const seen = fc.sample(observation, { numRuns: 8, seed: 1 });
    assert.notDeepEqual(
      play('random', 1, 'static_workload', seen, start),
      play('random', 2, 'static_workload', seen, start),
    );
  });
});

describe('createPolicy', () => {
  it('names the policies it knows when asked for another', () => {
    assert.throws(() => createPolicy('ppo2'), {
      code: 'UNKNOWN_POLICY',
      message: /^Expected a policy named one of random, default, .*, got "ppo2"$/,
    });
  });
});
