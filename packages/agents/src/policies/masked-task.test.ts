import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  holdMaskedKnobs,
  llmserve,
  type ServeAction,
  ServeEpisode,
  type ServeObservation,
  type ServeTask,
} from '@servegym/environments';
import { type Policy, playEpisode } from '../core/policy.ts';
import { tuneConstant } from '../learning/coordinate-search.ts';
import { encodeJsonPolicy, SERVE_LEARNER } from '../learning/learners.ts';
import { LEARNABLE, SERVE_PPO } from '../learning/learning-tasks.ts';
import { type PpoUpdate, trainPpo } from '../learning/ppo.ts';
import { decodeActor, encodeActor } from '../learning/trained-actor.ts';
import { planClairvoyant } from '../planning/plan-clairvoyant.ts';
import { MpcPolicy } from './planner-policies.ts';
import {
  createServePolicy,
  loadServePolicy,
  SERVE_POLICIES,
  SHIPPED_NAMES,
  tunedConstant,
} from './serve-policies.ts';

/** A server whose precision and split are what they are: a short task of one's own. This process knows it. */
const MASKED_TASK: ServeTask = {
  ...llmserve.tasks.shipped.bursty_workload,
  id: 'masked_task',
  windows: 20,
  phases: llmserve.tasks.shipped.bursty_workload.phases.map((phase) => ({
    ...phase,
    windows: [5, 7] as const,
  })),
  maskedKnobs: ['quantization_tier', 'prefill_decode_split'],
};
llmserve.tasks.add(MASKED_TASK);

/** Turns every knob, masked or not. */
const NO_DEFAULTS: ServeAction = {
  batch_cap: 200,
  kv_budget_fraction: 0.35,
  speculation_depth: 2,
  quantization_tier: 'INT4',
  prefill_decode_split: true,
  priority_routing: true,
};

const { id: taskId, defaultAction, maskedKnobs } = MASKED_TASK;

/** Plays a policy; the environment refuses an action that turns a masked knob. */
async function play(policy: Policy<ServeAction, ServeObservation>): Promise<readonly ServeAction[]> {
  const plan = { taskId, seed: 2_000_003, initialAction: defaultAction };
  const { actions } = await playEpisode(llmserve.definition().create(), policy, plan);
  assert.equal(actions.length, MASKED_TASK.windows);
  return actions;
}

describe('a task of one’s own that masks knobs', () => {
  for (const { name } of SERVE_POLICIES.filter(
    (policy) => !(SHIPPED_NAMES as readonly string[]).includes(policy.name),
  )) {
    it(`is played by ${name}`, async () => {
      const actions = await play(createServePolicy(name));
      const isConstant = ['default', 'static-tuned'].includes(name);
      assert.equal(new Set(actions.map((action) => JSON.stringify(action))).size > 1, !isConstant);
    });
  }

  it('is played by planners that are given configurations which turn masked knobs', async () => {
    const planner = new MpcPolicy([NO_DEFAULTS]);
    await play(planner);
    for (const { action } of planner.explain().alternatives) {
      assert.deepEqual(action, holdMaskedKnobs(MASKED_TASK, action));
    }
  });

  it('is played masked by configurations that were searched before the knobs were masked', async () => {
    const held = holdMaskedKnobs(MASKED_TASK, NO_DEFAULTS);
    for (const action of await play(tunedConstant(taskId, NO_DEFAULTS))) assert.deepEqual(action, held);
  });
});

/** Plays a trained policy from its file; the environment refuses an action that turns a masked knob. */
async function playFile(file: Uint8Array): Promise<void> {
  const { policy, taskId: trainedFor } = loadServePolicy(file);
  assert.equal(trainedFor, taskId);
  await play(policy);
}

describe('searches on a task that masks knobs', () => {
  const options = { taskId, seed: 1, traces: { few: 1, many: 1 } };

  it('tune the knobs that are free', async () => {
    const seen: object[] = [];
    const { action } = await tuneConstant({ ...options, onProgress: (found) => seen.push(found.action) });
    for (const tried of [...seen, action])
      assert.deepEqual(tried, holdMaskedKnobs(MASKED_TASK, tried as never));
    assert.ok(llmserve.activeKnobs(MASKED_TASK).some((knob) => action[knob] !== defaultAction[knob]));
    const { action: ofPhase } = await tuneConstant({ ...options, phase: MASKED_TASK.phases[0] });
    assert.deepEqual(ofPhase, holdMaskedKnobs(MASKED_TASK, ofPhase));
    await playFile(Buffer.from(encodeJsonPolicy(llmserve, taskId, { action }, {})));
  });

  it('plan with the knobs that are free, whichever configurations they are given', () => {
    const requests = llmserve.drawRequests(MASKED_TASK, 4);
    const plan = planClairvoyant(MASKED_TASK, 4, { requests, configurations: [NO_DEFAULTS, defaultAction] });
    const episode = new ServeEpisode(MASKED_TASK, 4, { requests });
    for (const action of plan.actions) {
      assert.deepEqual(action, holdMaskedKnobs(MASKED_TASK, action));
      episode.step(action);
    }
    assert.ok(Math.abs(episode.totals.reward - plan.return) < 1e-9);
  });
});

describe('a network for a task that masks knobs', () => {
  const learningTask = LEARNABLE.llmserve.learningTask({
    ...{ task: taskId, recipe: { ...SERVE_PPO, environments: 4, hidden: [8] } },
  });

  it('has no heads for masked knobs, in learning and in acting', async () => {
    const updates: PpoUpdate[] = [];
    const { weights } = await trainPpo({
      ...{ ...learningTask, steps: 512, seed: 1, threads: 1 },
      onUpdate: (update) => updates.push(update),
    });
    const { bins, headSizes } = SERVE_LEARNER.codec(MASKED_TASK);
    assert.deepEqual(
      Object.keys(bins),
      llmserve.knobs.filter((knob) => !maskedKnobs!.includes(knob)),
    );
    assert.deepEqual(weights.shape.headSizes, headSizes);
    assert.equal(updates.length, 2);
    for (const { firstRatioError, entropy } of updates) {
      assert.equal(firstRatioError, 0);
      const most = headSizes.reduce((sum, size) => sum + Math.log(size), 0);
      assert.ok(entropy > 0 && entropy <= most, `${entropy} of ${most}`);
    }
    const file = learningTask.encodeActor(weights, { algorithm: 'ppo' });
    await playFile(file);

    const { metadata } = decodeActor(file);
    const others = JSON.stringify(SERVE_LEARNER.codec({ ...MASKED_TASK, maskedKnobs: undefined }).bins);
    const unmasked = encodeActor(weights, { ...metadata, action_bins: others });
    assert.throws(() => loadServePolicy(unmasked), { code: /^POLICY_/, message: /action bins/ });
  });
});
