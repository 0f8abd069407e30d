import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { llmserve, ServeEpisode, type Shift } from '@servegym/environments';
import { type MpcName, MpcPolicy, OraclePolicy } from '../policies/planner-policies.ts';
import { actionKey, planClairvoyant } from './plan-clairvoyant.ts';

/** A third of an episode: enough for a change of phase. */
const task = { ...llmserve.tasks.shipped.bursty_workload, windows: 40 };
const seed = 2_000_000;
const requests = llmserve.drawRequests(task, seed);
const configurations = llmserve.anchors.configurations(task);

describe('the clairvoyant planner', () => {
  const plan = planClairvoyant(task, seed, { requests, configurations });

  it('earns what it says when its actions are played', () => {
    const episode = new ServeEpisode(task, seed, { requests });
    for (const action of plan.actions) episode.step(action);
    assert.equal(episode.done, true);
    assert.ok(Math.abs(episode.totals.reward - plan.return) < 1e-9);
  });

  it('is above every configuration kept, and below the bound', () => {
    for (const action of configurations) {
      assert.ok(plan.return > llmserve.anchors.constantReturn(task, seed, requests, action));
    }
    assert.ok(plan.return < llmserve.anchors.bound(task, requests));
  });

  it('changes its configuration with the traffic', () => {
    const tiers = new Set(plan.actions.map((action) => action.quantization_tier));
    assert.ok(tiers.size > 1);
  });

  it('keeps the best of the plans that it finds under several prices of a backlog', () => {
    const crowded = {
      ...llmserve.shift(llmserve.tasks.shipped.adversarial_multitenant, 'long_prompts'),
      windows: 40,
    };
    const given = { requests: llmserve.drawRequests(crowded, seed), configurations };
    const under = (...backlogPrices: number[]) =>
      planClairvoyant(crowded, seed, { ...given, backlogPrices }).return;
    const [one, four] = [under(1), under(4)];
    assert.notEqual(one, four);
    assert.equal(under(1, 4), Math.max(one, four));
  });
});

describe('the receding-horizon planner', () => {
  function played(windows: number, { name = 'mpc', shift }: { name?: MpcName; shift?: Shift } = {}) {
    const policy = new MpcPolicy(undefined, name);
    policy.reset({ taskId: 'bursty_workload', seed, ...(shift && { resetOptions: { shift } }) });
    const { bursty_workload } = llmserve.tasks.shipped;
    const episode = new ServeEpisode(shift ? llmserve.shift(bursty_workload, shift) : bursty_workload, seed);
    const actions = [];
    while (episode.window < windows) {
      const { action: previousAction, window: stepIndex } = episode;
      const observation = episode.observation();
      const action = policy.act({ observation, reward: null, previousAction, stepIndex });
      actions.push(action);
      episode.step(action);
    }
    return { actions, policy };
  }

  it('plays the same again, and tells what else it considered', () => {
    const first = played(6);
    assert.deepEqual(played(6).actions, first.actions);
    const { alternatives } = first.policy.explain();
    assert.deepEqual(alternatives[0]?.action, first.actions.at(-1));
    assert.ok(alternatives.length > 5);
    assert.equal(new Set(alternatives.map(({ action }) => actionKey(action))).size, alternatives.length);
    assert.ok(alternatives.every(({ value }) => value > -2 && value < 1));
  });

  it('plans with the model of the task as it was where it is not told of a shift', () => {
    assert.deepEqual(played(3, { name: 'mpc-unshifted' }).actions, played(3).actions);
    const shift = 'other_gpu';
    const values = (name: MpcName) => played(3, { name, shift }).policy.explain().alternatives;
    assert.notDeepEqual(values('mpc-unshifted'), values('mpc'));
  });

  it('plans on the server that is described where it has no profile', () => {
    const [told, estimated] = [{}, { server_from: 'metrics' }].map((resetOptions) => {
      const policy = new MpcPolicy();
      policy.reset({ taskId: 'bursty_workload', seed, resetOptions });
      const episode = new ServeEpisode(
        llmserve.choose({ task_id: 'bursty_workload', ...resetOptions }),
        seed,
      );
      while (episode.window < 3) {
        const { action: previousAction, window: stepIndex } = episode;
        const step = { observation: episode.observation(), reward: null, previousAction, stepIndex };
        episode.step(policy.act(step));
      }
      return policy.explain().alternatives[0]!.value;
    });
    assert.notEqual(estimated, told);
    assert.ok(Math.abs(estimated! - told!) < 0.1, `${estimated} ${told}`);
  });
});

describe('the oracle policy', () => {
  it('plays the plan of its episode', () => {
    const policy = new OraclePolicy();
    policy.reset({ taskId: 'static_workload', seed: 7 });
    const { static_workload } = llmserve.tasks.shipped;
    const plan = planClairvoyant(static_workload, 7, {
      requests: llmserve.drawRequests(static_workload, 7),
      configurations: llmserve.anchors.configurations(static_workload),
    });
    const step = { observation: new ServeEpisode(static_workload, 7).observation(), reward: null };
    const actions = plan.actions.map((previousAction, stepIndex) =>
      policy.act({ ...step, previousAction, stepIndex }),
    );
    assert.deepEqual(actions, plan.actions);
  });
});
