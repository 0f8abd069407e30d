import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EnvironmentError } from '@servegym/openenv/definition';
import fc from 'fast-check';
import { gradeEpisode } from './grader.ts';
import { anyAction } from './random-actions.fixture.ts';
import { type ServeAction, TASK_IDS } from './schema.ts';
import { SERVE_TASKS } from './tasks/serve-tasks.ts';

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
