import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  activeKnobs,
  drawRequests,
  holdMaskedKnobs,
  llmserve,
  SERVE_KNOBS,
  ServeEpisode,
} from '@servegym/environments';
import { playEpisode } from '../core/play-episode.ts';
import { type PpoUpdate, trainPpo } from '../learning/ppo.ts';
import { decodeActor, encodeActor } from '../learning/trained-actor.ts';
import { demonstrate } from './learn/demonstrate.ts';
import { distill } from './learn/distill.ts';
import { encodeRegimeTable, encodeServeConstant } from './learn/policy-files.ts';
import { playRegimes, searchRegimes } from './learn/search-regimes.ts';
import { ServeActionCodec } from './learn/serve-action-codec.ts';
import { SERVE_PPO, serveLearningTask } from './learn/serve-learning-task.ts';
import { tuneConstant, tunePhase } from './learn/tune-constant.ts';
import { MASKED_TASK, TURNED } from './masked-task.fixture.ts';
import { planClairvoyant } from './planning/plan-clairvoyant.ts';
import { HeuristicPolicy } from './policies/heuristic-policy.ts';
import { loadTrainedPolicy, PpoPolicy } from './policies/trained-policies.ts';

const { id: taskId, defaultAction, maskedKnobs } = MASKED_TASK;

/** Plays a trained policy from its file; the environment refuses an action that turns a masked knob. */
async function playFile(file: Uint8Array): Promise<void> {
  const { policy, taskId: trainedFor } = loadTrainedPolicy(file);
  assert.equal(trainedFor, taskId);
  const plan = { taskId, seed: 2_000_000, initialAction: defaultAction };
  const { actions } = await playEpisode(llmserve.create(), policy, plan);
  assert.equal(actions.length, MASKED_TASK.windows);
}

describe('searches on a task that masks knobs', () => {
  const options = { taskId, seed: 1, traces: { few: 1, many: 1 } };

  it('tune the knobs that are free', async () => {
    const seen: object[] = [];
    const { action } = await tuneConstant({ ...options, onProgress: (found) => seen.push(found.action) });
    for (const tried of [...seen, action])
      assert.deepEqual(tried, holdMaskedKnobs(MASKED_TASK, tried as never));
    assert.ok(activeKnobs(MASKED_TASK).some((knob) => action[knob] !== defaultAction[knob]));
    const { action: ofPhase } = await tunePhase(MASKED_TASK.phases[0], options);
    assert.deepEqual(ofPhase, holdMaskedKnobs(MASKED_TASK, ofPhase));
    await playFile(Buffer.from(encodeServeConstant({ taskId, action, training: {} })));
  });

  it('plan with the knobs that are free, whichever configurations they are given', () => {
    const requests = drawRequests(MASKED_TASK, 4);
    const plan = planClairvoyant(MASKED_TASK, 4, { requests, configurations: [TURNED, defaultAction] });
    const episode = new ServeEpisode(MASKED_TASK, 4, { requests });
    for (const action of plan.actions) {
      assert.deepEqual(action, holdMaskedKnobs(MASKED_TASK, action));
      episode.step(action);
    }
    assert.ok(Math.abs(episode.totals.reward - plan.return) < 1e-9);
  });

  it('find regimes whose configurations can be played', async () => {
    const table = await searchRegimes({
      ...{ taskId, steps: 1, seed: 1 },
      play: async (trials) =>
        trials
          .slice(0, 2)
          .map(playRegimes)
          .concat(new Array(trials.length - 2).fill(0)),
    });
    for (const { action } of table.regimes) assert.deepEqual(action, holdMaskedKnobs(MASKED_TASK, action));
    await playFile(Buffer.from(encodeRegimeTable(table)));
  });
});

describe('a network for a task that masks knobs', () => {
  const learningTask = serveLearningTask(taskId, { ...SERVE_PPO, environments: 4, hidden: [8] });

  it('has no heads for masked knobs, in learning and in acting', async () => {
    const updates: PpoUpdate[] = [];
    const { weights } = await trainPpo({
      ...{ ...learningTask, steps: 512, seed: 1, threads: 1 },
      onUpdate: (update) => updates.push(update),
    });
    const { bins, headSizes } = new ServeActionCodec(MASKED_TASK);
    assert.deepEqual(
      Object.keys(bins),
      SERVE_KNOBS.filter((knob) => !maskedKnobs!.includes(knob)),
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
    const others = JSON.stringify(new ServeActionCodec({ defaultAction }).bins);
    const unmasked = encodeActor(weights, { ...metadata, action_bins: others });
    assert.throws(() => loadTrainedPolicy(unmasked), { code: /^POLICY_/, message: /action bins/ });
  });

  it('learns from a teacher what the teacher does with the knobs that are free', async () => {
    const { headSizes } = new ServeActionCodec(MASKED_TASK);
    const weights = await distill({
      ...{ taskId, seed: 1, episodes: 3, minibatches: 20 },
      demonstrate: async ({ traces, student }) => {
        const player = student && new PpoPolicy({ taskId, weights: student, training: {} });
        const shown = traces.map((trace) => demonstrate(taskId, trace, new HeuristicPolicy(), player));
        for (const { actions } of shown) assert.equal(actions.length, MASKED_TASK.windows * headSizes.length);
        return shown;
      },
    });
    await playFile(learningTask.encodeActor(weights, { algorithm: 'distill' }));
  });
});
