import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { llmserve, type ServeAction, ServeEpisode, type ServeObservation } from '@servegym/environments';
import { findProfile } from '@servegym/profiles';
import type { ServePolicy } from '../policies/serve-policies.ts';
import { AGENTS } from '../registry.ts';
import {
  type EpisodeResult,
  type EvaluationPlan,
  evaluatePolicy,
  joinEvaluations,
} from './evaluate-policy.ts';
import type { EnvironmentInstance, PlayableEnvironment } from './playable.ts';
import { type Policy, type PolicyStep, playEpisode } from './policy.ts';

/** Observes a running total of the actions, starting from the seed; rewards each action; ends after `length` windows. */
function summing(length: number): EnvironmentInstance<number, number> {
  let total = 0;
  let played = 0;
  return {
    reset({ seed }) {
      total = seed;
      played = 0;
      return { observation: total, reward: null, done: false };
    },
    step(action) {
      total += action;
      played++;
      return Promise.resolve({ observation: total, reward: action, done: played === length });
    },
  };
}

/** Adds one to the previous action, and keeps what it was told. */
function counting() {
  const steps: PolicyStep<number, number>[] = [];
  const resets: unknown[] = [];
  const policy: Policy<number, number> = {
    name: 'counting',
    reset: (episode) => resets.push(episode),
    act(step) {
      steps.push({ ...step });
      return step.previousAction + 1;
    },
  };
  return { policy, steps, resets };
}

describe('playEpisode', () => {
  it('plays to the end and sums the rewards', async () => {
    const played = await playEpisode(summing(4), counting().policy, {
      taskId: 't',
      seed: 5,
      initialAction: 10,
    });
    assert.deepEqual(played.actions, [11, 12, 13, 14]);
    assert.equal(played.return, 50);
    assert.ok(played.wallSeconds > 0);
  });

  it('tells the policy what it sees, what is in force and how far it is', async () => {
    const { policy, steps, resets } = counting();
    await playEpisode(summing(3), policy, { taskId: 't', seed: 5, initialAction: 10 });
    assert.deepEqual(resets, [{ taskId: 't', seed: 5 }]);
    assert.deepEqual(steps, [
      { observation: 5, reward: null, previousAction: 10, stepIndex: 0 },
      { observation: 16, reward: 11, previousAction: 11, stepIndex: 1 },
      { observation: 28, reward: 12, previousAction: 12, stepIndex: 2 },
    ]);
  });

  it('leaves an episode after so many steps', async () => {
    const plan = { taskId: 't', seed: 5, initialAction: 10, maxSteps: 2 };
    assert.equal((await playEpisode(summing(4), counting().policy, plan)).actions.length, 2);
  });

  it('shows every window, and not the answer to the reset', async () => {
    const seen: unknown[] = [];
    const plan = { taskId: 't', seed: 5, initialAction: 10 };
    await playEpisode(summing(2), counting().policy, plan, (window) => seen.push(window));
    assert.deepEqual(seen, [
      { action: 11, observation: 16, reward: 11, done: false },
      { action: 12, observation: 28, reward: 12, done: true },
    ]);
  });
});

const WINDOWS = 2;

/** Two windows an episode; the reward is the seed, twice as much on the bursty task; a tenth of it is the score. */
function fixture({ onClose = () => {} } = {}): PlayableEnvironment<ServeAction, ServeObservation> {
  const worth = (taskId: string | number, seed: number) => seed * (taskId === 'bursty_workload' ? 2 : 1);
  const window = (played: number): ServeObservation => ({
    queue_depth: 0,
    active_requests: 0,
    kv_cache_occupancy: 0.6,
    mean_prompt_length: 500,
    p50_ttft_ms: 100,
    p99_ttft_ms: 200,
    p50_itl_ms: 20,
    // 3 of 4 tokens cost 1, the others 5: 2 for 1,000 on average.
    throughput_tps: played === 1 ? 300 : 100,
    slo_compliance_rate: played === 1 ? 1 : 0.5,
    gpu_memory_used_gb: 30,
    estimated_cost_per_1k: played === 1 ? 1 : 5,
    request_arrival_rate: 15,
    spec_acceptance_rate: 0,
    eviction_events: played,
    step_index: played,
    quality_value: 8,
    task_id: 'static_workload',
    relative: new ServeEpisode(llmserve.tasks.shipped.static_workload, 0).observation().relative,
    server: llmserve.describeServer(
      llmserve.tasks.shipped.static_workload,
      findProfile(llmserve.tasks.shipped.static_workload.profile),
    ),
  });
  return {
    ...AGENTS.llmserve.playable(),
    create() {
      let reward = 0;
      let played = 0;
      return {
        reset({ task_id, seed }) {
          played = 0;
          reward = worth(task_id!, seed);
          return { observation: window(0), reward: null, done: false };
        },
        step() {
          played++;
          return { observation: window(played), reward, done: played === WINDOWS };
        },
        close: onClose,
      };
    },
    grade: ({ reset, actions }) => {
      assert.equal(actions.length, WINDOWS);
      return { score: worth(reset.task_id!, reset.seed) / 10, feedback: '', breakdown: {} };
    },
  };
}

const plan: EvaluationPlan = { taskIds: ['static_workload', 'bursty_workload'], seeds: [1, 2, 3, 4] };

describe('evaluatePolicy', () => {
  it('reports score and return of every task, and the score over all', async () => {
    const { policy, tasks, overall } = await evaluatePolicy(
      fixture(),
      AGENTS.llmserve.createPolicy('default'),
      plan,
    );
    assert.equal(policy, 'default');
    assert.deepEqual(
      tasks.map(({ taskId, score, return: total }) => [taskId, score.mean, score.iqm, total.mean, total.iqm]),
      [
        ['static_workload', 0.25, 0.25, 5, 5],
        ['bursty_workload', 0.5, 0.5, 10, 10],
      ],
    );
    for (const { score } of tasks) assert.ok(score.ci95[0] < score.iqm && score.iqm < score.ci95[1]);
    assert.ok(Math.abs(overall.mean - 0.375) < 1e-12);
    // The middle half of .1 .2 .2 .3 .4 .4 .6 .8.
    assert.ok(Math.abs(overall.iqm - 1.3 / 4) < 1e-12);
  });

  it('measures what was served', async () => {
    const { tasks } = await evaluatePolicy(fixture(), AGENTS.llmserve.createPolicy('default'), plan);
    assert.equal(tasks.length, plan.taskIds.length);
    for (const task of tasks) {
      assert.equal(task.sloCompliance, 0.75);
      assert.equal(task.costPer1k, 2);
      assert.equal(task.preemptions, 3);
      assert.ok(task.windowsPerSecond > 0);
    }
  });

  it('plays the same seeds on every task, one after the other', async () => {
    const seen: EpisodeResult[] = [];
    const progress: number[][] = [];
    await evaluatePolicy(fixture(), AGENTS.llmserve.createPolicy('random'), {
      ...plan,
      onEpisode: (episode, finished, planned) => {
        seen.push(episode);
        progress.push([finished, planned]);
      },
    });
    assert.deepEqual(
      seen.map(({ taskId, seed }) => `${taskId} ${seed}`),
      plan.taskIds.flatMap((taskId) => plan.seeds.map((seed) => `${taskId} ${seed}`)),
    );
    assert.deepEqual(progress.at(0), [1, 8]);
    assert.deepEqual(progress.at(-1), [8, 8]);
  });

  it('starts from the default configuration of the task', async () => {
    const inForce: ServeAction[] = [];
    const spy: ServePolicy = {
      name: 'spy',
      reset() {},
      act({ previousAction, stepIndex }) {
        if (stepIndex === 0) inForce.push(previousAction);
        return { ...previousAction, batch_cap: 7 };
      },
    };
    await evaluatePolicy(fixture(), spy, { taskIds: ['adversarial_multitenant'], seeds: [1, 2] });
    const { defaultAction } = llmserve.tasks.shipped.adversarial_multitenant;
    assert.deepEqual(inForce, [defaultAction, defaultAction]);
  });

  it('closes the environment, also when an episode fails', async () => {
    let closed = 0;
    const environment = fixture({ onClose: () => closed++ });
    await evaluatePolicy(environment, AGENTS.llmserve.createPolicy('default'), plan);
    const opened = plan.taskIds.length;
    assert.equal(closed, opened);
    const broken: ServePolicy = {
      name: 'broken',
      reset() {},
      act() {
        throw new Error('no idea');
      },
    };
    await assert.rejects(evaluatePolicy(environment, broken, plan), /no idea/);
    assert.equal(closed, opened + 1);
  });

  it('counts evaluations under several conditions as one', async () => {
    const evaluation = await evaluatePolicy(fixture(), AGENTS.llmserve.createPolicy('default'), plan);
    const joined = joinEvaluations(
      new Map([
        ['calm', evaluation],
        ['rough', evaluation],
      ]),
    );
    assert.deepEqual(
      joined.tasks.map(({ taskId }) => taskId),
      ['calm', 'rough'].flatMap((condition) => plan.taskIds.map((taskId) => `${taskId} ${condition}`)),
    );
    assert.ok(Math.abs(joined.overall.mean - evaluation.overall.mean) < 1e-12);
  });

  it('refuses nothing to evaluate on', async () => {
    const policy = AGENTS.llmserve.createPolicy('default');
    await assert.rejects(evaluatePolicy(fixture(), policy, { ...plan, taskIds: [] }), /at least one task/);
    await assert.rejects(evaluatePolicy(fixture(), policy, { ...plan, seeds: [] }), /at least one seed/);
    const ungraded = { ...fixture(), grade: undefined };
    await assert.rejects(evaluatePolicy(ungraded, policy, plan), /an environment that grades its episodes/);
  });
});
