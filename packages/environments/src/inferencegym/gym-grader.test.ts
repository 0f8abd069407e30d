import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { EnvironmentError } from '@servegym/openenv/definition';
import fc from 'fast-check';
import { anyGymAction } from './gym-actions.fixture.ts';
import { GymEpisode } from './gym-episode.ts';
import { gradeGymEpisode } from './gym-grader.ts';
import { GYM_TASK_IDS, GYM_TASKS, type GymTaskId } from './gym-tasks.ts';
import { calibrateTask, shippedWorld } from './gym-world.ts';
import { EPISODE_STEPS, GYM_DEFAULT_ACTION, type GymAction } from './schema.ts';

const world = await shippedWorld();

function record(id: GymTaskId, change: Partial<GymAction> = {}, { steps = EPISODE_STEPS, seed = 0 } = {}) {
  return {
    reset: { task_id: id, seed },
    actions: Array.from({ length: steps }, () => ({ ...GYM_DEFAULT_ACTION, ...change })),
  };
}

const grade = (...args: Parameters<typeof record>) => gradeGymEpisode(world, record(...args));
const score = (...args: Parameters<typeof record>) => grade(...args).score;

/** Scores that InferenceGym expects of its fixed baseline agent. */
const EXPECTED = { 1: [0.3, 0.4], 2: [0.22, 0.32], 3: [0.18, 0.28] } as const;
/** Good configurations, found by the calibration or by hand. */
const GOOD: Record<GymTaskId, Partial<GymAction>> = {
  1: { batch_size: 256, kv_budget: 0.75 },
  2: { batch_size: 128, kv_budget: 0.5, spec_length: 1 },
  3: { batch_size: 64, kv_budget: 0.25, prefill_disagg: true, quant_tier: 1 },
};

describe('the grade of inferencegym', () => {
  for (const id of GYM_TASK_IDS) {
    it(`of the baseline agent is where InferenceGym expects it (task ${id})`, () => {
      for (const seed of [0, 42, 2_000_000, 2_000_001]) {
        const [low, high] = EXPECTED[id];
        const got = score(id, {}, { seed });
        assert.ok(got >= low && got <= high, `${got} on seed ${seed}, expected ${low} to ${high}`);
      }
    });

    it(`rises by 0.25 and more from the baseline to a good configuration (task ${id})`, () => {
      assert.ok(score(id, GOOD[id]) > score(id) + 0.25);
    });

    it(`is below the baseline for nobody served, an early stop and memory that runs out (task ${id})`, () => {
      const baseline = score(id);
      const exploits = {
        'no step': score(id, GOOD[id], { steps: 0 }),
        'one step': score(id, GOOD[id], { steps: 1 }),
        'a quarter': score(id, GOOD[id], { steps: 50 }),
        half: score(id, GOOD[id], { steps: 100 }),
        'three quarters': score(id, GOOD[id], { steps: 150 }),
        'smallest batch and pool': score(id, { batch_size: 1, kv_budget: 0.1, quant_tier: 2 }),
        'smallest batch, largest pool': score(id, { batch_size: 1 }),
        'largest batch and pool': score(id, { batch_size: 512, kv_budget: 1 }),
        'largest of all': score(id, { batch_size: 512, spec_length: 8, prefill_disagg: true, quant_tier: 2 }),
      };
      for (const [name, got] of Object.entries(exploits)) {
        assert.ok(got > 0 && got < baseline, `${name}: ${got}, baseline ${baseline}`);
      }
    });

    it(`is best for no corner of the action space (task ${id})`, () => {
      const best = score(id, GOOD[id]);
      for (const batch_size of [1, 512]) {
        for (const kv_budget of [0.1, 1]) {
          for (const spec_length of [0, 8] as const) {
            for (const prefill_disagg of [false, true]) {
              for (const quant_tier of [0, 2] as const) {
                const corner = { batch_size, kv_budget, spec_length, prefill_disagg, quant_tier };
                assert.ok(score(id, corner) < best, JSON.stringify(corner));
              }
            }
          }
        }
      }
    });

    it(`lies strictly inside (0, 1) and is the same every time (task ${id})`, () => {
      fc.assert(
        fc.property(fc.nat(), fc.array(anyGymAction, { maxLength: EPISODE_STEPS }), (seed, actions) => {
          const played = { reset: { task_id: id, seed }, actions };
          const first = gradeGymEpisode(world, played);
          assert.ok(first.score > 0 && first.score < 1);
          assert.deepEqual(gradeGymEpisode(world, played), first);
        }),
        { numRuns: 15 },
      );
    });
  }

  // Written by running this test with UPDATE_GOLDEN=1.
  it('data: is measured against what the table allows, which the calibration finds again', () => {
    const found = Object.fromEntries(
      GYM_TASK_IDS.map((id) => [id, calibrateTask(world.times, GYM_TASKS[id])]),
    );
    const file = new URL('shipped-calibration.json', import.meta.url);
    if (process.env.UPDATE_GOLDEN === '1') writeFileSync(file, `${JSON.stringify(found, null, 2)}\n`);
    assert.deepEqual(found, JSON.parse(readFileSync(file, 'utf8')));
  });

  it('counts steps that were not played as steps that serve nobody, within 5 s', () => {
    const played = record(2, GOOD[2], { steps: 150 });
    const episode = new GymEpisode(GYM_TASKS[2], 0, world);
    for (const action of played.actions) episode.step(action);
    const { totals } = episode;
    const { breakdown } = gradeGymEpisode(world, played);
    assert.equal(breakdown.mean_ttft_p50_ms, (totals.ttftMs + 50 * 5000) / 200);
    assert.equal(breakdown.mean_slo_violation_rate, (totals.violationRate + 50) / 200);
    assert.equal(breakdown.served_share, (totals.served / totals.arrived) * (150 / 200));
    assert.equal(breakdown.mean_tokens_per_sec, totals.outputTokens / 200);
    assert.deepEqual([breakdown.steps_played, breakdown.steps], [150, 200]);
  });

  it('is lower with INT4 always than with FP16', () => {
    assert.ok(score(3, { quant_tier: 2 }) < score(3));
    assert.ok(score(3, { quant_tier: 1 }) > score(3), 'INT8 prefills faster');
    assert.ok(score(3, { ...GOOD[3], quant_tier: 2 }) < score(3, GOOD[3]));
  });

  it('is lower for turning the weights to and fro', () => {
    const flapping = record(3);
    for (const [i, action] of flapping.actions.entries()) action.quant_tier = i % 2 === 0 ? 1 : 0;
    assert.ok(gradeGymEpisode(world, flapping).score < score(3));
  });

  it('lets nothing that is saved make up for serving fewer requests, and later, than the default', () => {
    const pairs: readonly [GymTaskId, Partial<GymAction>, Partial<GymAction>][] = [
      [2, { batch_size: 4, kv_budget: 0.75 }, { batch_size: 64, kv_budget: 0.75 }],
      [2, { batch_size: 2, kv_budget: 0.5, spec_length: 1 }, { batch_size: 48, kv_budget: 0.5 }],
      [2, { kv_budget: 0.2 }, { kv_budget: 0.75 }],
      [2, { batch_size: 16, kv_budget: 0.75 }, { batch_size: 16, kv_budget: 0.75 }],
      [
        3,
        { batch_size: 8, kv_budget: 0.15, quant_tier: 1 },
        { batch_size: 8, kv_budget: 0.15, quant_tier: 1 },
      ],
    ];
    for (const [id, even, odd] of pairs) {
      const flapping = record(id, {}, { seed: 2_000_000 });
      for (const [i, action] of flapping.actions.entries()) Object.assign(action, i % 2 === 0 ? even : odd);
      const { score: got, breakdown, feedback } = gradeGymEpisode(world, flapping);
      const told = JSON.stringify({ id, even, odd, got });
      assert.ok(Number(breakdown.served_share) < Number(breakdown.default_served_share), told);
      assert.ok(
        Number(breakdown.mean_slo_violation_rate) > Number(breakdown.default_slo_violation_rate),
        told,
      );
      assert.ok(got < score(id, {}, { seed: 2_000_000 }), told);
      assert.match(feedback, /nothing that is saved makes up for it/);
    }
  });

  it("lets nothing that is saved count where one figure of the service is worse than the default's", () => {
    const later = { batch_size: 16, kv_budget: 0.1, spec_length: 1, quant_tier: 1 } as const;
    const { breakdown, feedback } = grade(3, later);
    const served = Number(breakdown.served_share);
    assert.ok(served > Number(breakdown.default_served_share));
    assert.ok(Number(breakdown.mean_slo_violation_rate) > Number(breakdown.default_slo_violation_rate));
    assert.match(feedback, /nothing that is saved makes up for it/);
    // The default is over its budget: it saves nothing.
    assert.ok(Number(breakdown.cost_cents) < 0.6 * GYM_TASKS[3].costBudget!);
    assert.equal(breakdown.cost, 0);
    const fewer = grade(3, { kv_budget: 0.5, spec_length: 2, batch_size: 24 });
    assert.ok(Number(fewer.breakdown.served_share) < Number(fewer.breakdown.default_served_share));
    const { mean_slo_violation_rate, default_slo_violation_rate } = fewer.breakdown;
    assert.ok(Number(mean_slo_violation_rate) < Number(default_slo_violation_rate));
    assert.match(fewer.feedback, /nothing that is saved makes up for it/);
  });

  it('lets savings count, by the share that is served, for who serves no worse than the default', () => {
    const { breakdown } = grade(3, GOOD[3]);
    const served = Number(breakdown.served_share);
    assert.ok(served >= Number(breakdown.default_served_share));
    assert.ok(Number(breakdown.mean_slo_violation_rate) <= Number(breakdown.default_slo_violation_rate));
    const left = Math.max(0, 1 - Number(breakdown.cost_cents) / GYM_TASKS[3].costBudget!);
    assert.ok(Math.abs(Number(breakdown.cost) - left * served) < 1e-12, JSON.stringify(breakdown));
  });

  it('lets memory count that is saved while as many are served', () => {
    assert.ok(score(2, { kv_budget: 0.75 }) > score(2) + 0.1);
  });

  it('takes stability away from who changes batch and pool from step to step', () => {
    const wavering = record(3, GOOD[3]);
    for (const [i, action] of wavering.actions.entries()) action.batch_size = i % 2 === 0 ? 64 : 320;
    const { breakdown } = gradeGymEpisode(world, wavering);
    const steady = grade(3, GOOD[3]).breakdown;
    assert.equal(steady.action_variance, 0);
    assert.ok(Number(breakdown.action_variance) > 0.9);
    assert.ok(Number(breakdown.stability) < Number(steady.stability));
  });

  it('takes no stability away for changes that are all alike', () => {
    const climbing = record(3);
    for (const [i, action] of climbing.actions.entries()) action.batch_size = 64 + 2 * i;
    assert.ok(Number(gradeGymEpisode(world, climbing).breakdown.action_variance) < 1e-9);
  });

  it('is bent near 1, which it never reaches', () => {
    const { score: got, breakdown } = grade(1, GOOD[1]);
    const raw = Number(breakdown.throughput);
    assert.ok(raw > 0.95, `${raw}`);
    assert.ok(Math.abs(got - (1 - 0.05 * Math.exp((1 - raw) / 0.05 - 1))) < 1e-12, `${got}`);
  });

  it('is the weighted sum of its parts', () => {
    for (const id of GYM_TASK_IDS) {
      const { score: whole, breakdown } = grade(id, GOOD[id], { seed: 7 });
      const weights = breakdown.weights as Record<string, number>;
      const sum = Object.entries(weights).reduce(
        (total, [part, w]) => total + w * Number(breakdown[part]),
        0,
      );
      if (sum < 0.95) assert.ok(Math.abs(sum - whole) < 1e-12);
      assert.ok(Math.abs(Object.values(weights).reduce((a, b) => a + b, 0) - 1) < 1e-12);
    }
  });

  it('does not depend on the weights of the reward', () => {
    const played = record(1, GOOD[1]);
    const weighted = { ...played, reset: { ...played.reset, config: { alpha: 0, beta: 1 } } };
    assert.equal(gradeGymEpisode(world, weighted).score, gradeGymEpisode(world, played).score);
  });

  it('says in words what was lost', () => {
    assert.match(grade(1, {}, { steps: 0 }).feedback, /no actions: nobody was served/);
    assert.match(grade(1, {}, { steps: 150 }).feedback, /50 of 200 steps were not played/);
    assert.match(grade(1, { batch_size: 512 }).feedback, /ran out of memory \d+ times/);
    assert.match(grade(2).feedback, /Most is lost in ttft/);
    assert.match(grade(1, GOOD[1]).feedback, /Close to the best/);
  });

  it('refuses more actions than the episode has steps', () => {
    assert.throws(
      () => grade(1, {}, { steps: EPISODE_STEPS + 1 }),
      (error) => error instanceof EnvironmentError && error.code === 'EPISODE_TOO_LONG',
    );
  });
});
