import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EnvironmentError } from '@servegym/openenv/definition';
import fc from 'fast-check';
import { type EpisodeAnchors, referenceConfigurations } from './anchors/serve-anchors.ts';
import { gradeEpisode } from './environment.ts';
import { anyAction } from './random-actions.fixture.ts';
import { DEFAULT_ACTION, type ServeAction, TASK_IDS } from './schema.ts';
import { ServeEpisode } from './serve-episode.ts';
import { SERVE_TASKS } from './serve-task.ts';

const whole = (taskId: (typeof TASK_IDS)[number], action: Partial<ServeAction>, windows?: number) => {
  const task = SERVE_TASKS[taskId];
  return {
    reset: { task_id: taskId, seed: 2_000_001 },
    actions: Array.from({ length: windows ?? task.windows }, () => ({ ...task.defaultAction, ...action })),
  };
};

describe('the grade of an episode', () => {
  for (const taskId of TASK_IDS) {
    it(`is 0.20 for the default configuration (${taskId})`, () => {
      assert.equal(gradeEpisode(whole(taskId, {})).score, 0.2);
    });

    it(`is below the default for no step, few steps and an early stop (${taskId})`, () => {
      const { windows } = SERVE_TASKS[taskId];
      const good: Partial<ServeAction> = {
        batch_cap: 96,
        kv_budget_fraction: 0.3,
        speculation_depth: 3,
        quantization_tier: taskId === 'static_workload' ? 'FP16' : 'INT8',
      };
      const scores = [0, 1, 5, windows >> 1].map((played) => gradeEpisode(whole(taskId, good, played)).score);
      for (const score of scores) assert.ok(score > 0 && score < 0.2, `${score}`);
      assert.ok(gradeEpisode(whole(taskId, good)).score > 0.2);
    });

    it(`lies strictly inside (0, 1) and is the same every time (${taskId})`, () => {
      fc.assert(
        fc.property(fc.nat(), fc.array(anyAction, { maxLength: 60 }), (seed, actions) => {
          const record = { reset: { task_id: taskId, seed }, actions };
          const grade = gradeEpisode(record);
          assert.ok(grade.score > 0 && grade.score < 1);
          assert.deepEqual(gradeEpisode(record), grade);
        }),
        { numRuns: 5 },
      );
    });
  }

  it('is readable for the example settings of LLMServeEnv, which earn less than the default', () => {
    const examples: Readonly<Record<string, ServeAction>> = {
      'default action': DEFAULT_ACTION,
      'start of its heuristic': { ...DEFAULT_ACTION, kv_budget_fraction: 0.7 },
      'four drafts, INT8': { ...DEFAULT_ACTION, speculation_depth: 4, quantization_tier: 'INT8' },
    };
    for (const taskId of TASK_IDS) {
      for (const [name, action] of Object.entries(examples)) {
        const { score } = gradeEpisode(whole(taskId, action));
        assert.ok(score > 0.01, `${name}, ${taskId}: ${score}`);
      }
    }
  });

  it('tells the return, what a planner would have had more, and how far the planner is from the bound', () => {
    const record = whole('bursty_workload', { batch_cap: 96 }, 60);
    const task = SERVE_TASKS.bursty_workload;
    const episode = new ServeEpisode(task, 2_000_001);
    for (const action of record.actions) episode.step(action);
    const { breakdown } = gradeEpisode(record);
    // Windows that were not played count -1 each.
    assert.equal(breakdown.return, episode.totals.reward - (task.windows - 60));
    const { clairvoyant, bound } = breakdown.anchors as EpisodeAnchors;
    assert.equal(breakdown.regret, clairvoyant - Number(breakdown.return));
    const { clairvoyant: best, ...others } = breakdown.anchor_scores as Record<string, number>;
    assert.equal(best, 0.95);
    assert.equal(others.default, 0.2);
    assert.ok(others.constant > 0.2 && others.constant < 0.95, JSON.stringify(others));
    assert.deepEqual(breakdown.certificate, { bound, gap: bound - clairvoyant });
    assert.deepEqual([breakdown.windows_played, breakdown.windows], [60, task.windows]);
    assert.equal(breakdown.cost_usd, episode.totals.cost);
  });

  it('says in words how the return compares with the default, the planner and the best constant', () => {
    const told = (action: Partial<ServeAction>) => gradeEpisode(whole('bursty_workload', action));
    assert.match(told({}).feedback, /^As good as the default/);
    const worse = told({ batch_cap: 1 });
    assert.match(worse.feedback, /^Worse than the default configuration on this traffic, by \d/);
    assert.ok(worse.score < 0.2);
    const constant = referenceConfigurations(SERVE_TASKS.bursty_workload)[0];
    const { breakdown, feedback } = told(constant);
    const anchors = breakdown.anchors as EpisodeAnchors;
    const gain = Number(breakdown.return) - anchors.default;
    const share = ((100 * gain) / (anchors.clairvoyant - anchors.default)).toFixed(0);
    assert.equal(
      feedback,
      `Better than the default configuration on this traffic, by ${gain.toFixed(1)}: ${share} % of what a planner gains that knows the traffic. ${
        Number(breakdown.return) > anchors.constant! ? 'More' : 'Not more'
      } than the best configuration that never changes.`,
    );
  });

  it('refuses more actions than the episode has windows', () => {
    const { windows } = SERVE_TASKS.static_workload;
    assert.throws(
      () => gradeEpisode(whole('static_workload', {}, windows + 1)),
      (error) => error instanceof EnvironmentError && error.code === 'EPISODE_TOO_LONG',
    );
  });

  it('says what an unfinished episode lacks', () => {
    assert.match(gradeEpisode(whole('static_workload', {}, 50)).feedback, /10 of 60 windows were not played/);
  });
});
