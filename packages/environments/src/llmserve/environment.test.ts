import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EnvironmentError, type StepResult } from '@servegym/openenv/definition';
import fc from 'fast-check';
import { splitOfSeed } from '../scenario.ts';
import { type EpisodeAnchors, referenceConfigurations } from './anchors/serve-anchors.ts';
import { llmserve } from './environment.ts';
import { anyAction } from './random-actions.fixture.ts';
import {
  DEFAULT_ACTION,
  type ServeAction,
  type ServeObservation,
  serveActionSchema,
  serveStateSchema,
  TASK_IDS,
} from './schema.ts';
import { ServeEpisode } from './serve-episode.ts';
import { SERVE_TASKS } from './serve-task.ts';
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
      assert.equal(llmserve.grade(whole(taskId, {})).score, 0.2);
    });

    it(`is below the default for no step, few steps and an early stop (${taskId})`, () => {
      const { windows } = SERVE_TASKS[taskId];
      const good: Partial<ServeAction> = {
        batch_cap: 96,
        kv_budget_fraction: 0.3,
        speculation_depth: 3,
        quantization_tier: taskId === 'static_workload' ? 'FP16' : 'INT8',
      };
      const scores = [0, 1, 5, windows >> 1].map(
        (played) => llmserve.grade(whole(taskId, good, played)).score,
      );
      for (const score of scores) assert.ok(score > 0 && score < 0.2, `${score}`);
      assert.ok(llmserve.grade(whole(taskId, good)).score > 0.2);
    });

    it(`lies strictly inside (0, 1) and is the same every time (${taskId})`, () => {
      fc.assert(
        fc.property(fc.nat(), fc.array(anyAction, { maxLength: 60 }), (seed, actions) => {
          const record = { reset: { task_id: taskId, seed }, actions };
          const grade = llmserve.grade(record);
          assert.ok(grade.score > 0 && grade.score < 1);
          assert.deepEqual(llmserve.grade(record), grade);
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
        const { score } = llmserve.grade(whole(taskId, action));
        assert.ok(score > 0.01, `${name}, ${taskId}: ${score}`);
      }
    }
  });

  it('tells the return, what a planner would have had more, and how far the planner is from the bound', () => {
    const record = whole('bursty_workload', { batch_cap: 96 }, 60);
    const task = SERVE_TASKS.bursty_workload;
    const episode = new ServeEpisode(task, 2_000_001);
    for (const action of record.actions) episode.step(action);
    const { breakdown } = llmserve.grade(record);
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
    const told = (action: Partial<ServeAction>) => llmserve.grade(whole('bursty_workload', action));
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
      () => llmserve.grade(whole('static_workload', {}, windows + 1)),
      (error) => error instanceof EnvironmentError && error.code === 'EPISODE_TOO_LONG',
    );
  });

  it('says what an unfinished episode lacks', () => {
    assert.match(
      llmserve.grade(whole('static_workload', {}, 50)).feedback,
      /10 of 60 windows were not played/,
    );
  });
});
