import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { llmserve, ServeEpisode, type ServeTask } from '@servegym/environments';
import { findProfile } from '@servegym/profiles';
import { findPolicy } from '../core/evaluate.ts';
import { playWindows } from '../core/policy.ts';
import { playSteadyState } from '../policies/steady-state.ts';
import { PRECISION_LEARNER } from './learners.ts';
import { playPrecisions } from './precision-rollouts.ts';
import { trainPolicy } from './train-policy.ts';
import { TrainedActor } from './trained-actor.ts';

const { bursty_workload: bursty } = llmserve.tasks.shipped;
const profile = findProfile(bursty.profile);

/** Values each precision alike, but for those of `bias`. */
function actor(bias: readonly number[], keepBonus: number): TrainedActor {
  const observationSize = PRECISION_LEARNER.environment.features.length;
  const none = Array<number>(observationSize).fill(0);
  const parameters = new Float32Array((observationSize + 1) * 2 + 3 * 2 + 3 * 3);
  parameters.set(bias, parameters.length - 3);
  return new TrainedActor({
    ...{ shape: { observationSize, headSizes: [3], hidden: [2, 2] }, keepBonus, parameters },
    moments: { rows: 1, mean: none, spread: none },
  });
}

function played(task: ServeTask, act: ReturnType<typeof playPrecisions>) {
  const episode = new ServeEpisode(task, 3, { profile });
  const actions: string[] = [];
  playWindows(episode, (step) => {
    const action = act(step);
    actions.push(JSON.stringify(action));
    return action;
  });
  return actions;
}

describe('a choice of precisions', () => {
  it('is the steady state unless a precision earns more than the margin', () => {
    const steady = played(bursty, playSteadyState(bursty, profile));
    assert.deepEqual(played(bursty, playPrecisions(bursty, profile, actor([0, 0, 1], 1.1))), steady);
    const other = played(bursty, playPrecisions(bursty, profile, actor([0, 0, 1], 0.9)));
    const calm = other.slice(1, 20).map((action) => JSON.parse(action).quantization_tier);
    assert.ok(calm.every((tier) => tier === 'INT4'));
  });

  it('leaves what a task masks', () => {
    const masked: ServeTask = { ...bursty, maskedKnobs: ['quantization_tier'] };
    const actions = played(masked, playPrecisions(masked, profile, actor([0, 0, 1], 0)));
    assert.ok(
      actions.every(
        (action) => JSON.parse(action).quantization_tier === bursty.defaultAction.quantization_tier,
      ),
    );
  });

  it('is learned from rollouts, and plays any task on any server', async () => {
    const run = { environment: 'llmserve', task: 'any', algorithm: 'rollout', steps: 1, seed: 3 } as const;
    const generations: number[] = [];
    const { policy: file, steps } = await trainPolicy(run, {
      onProgress(progress) {
        if (progress.kind === 'generation') generations.push(progress.generation.steps);
      },
    });
    assert.deepEqual([generations.length, generations.at(-1)], [3, steps]);
    const { policy, taskIds } = findPolicy('llmserve', file);
    assert.deepEqual(taskIds, llmserve.tasks.ids());
    policy.reset({ taskId: 'static_workload', seed: 1, resetOptions: { shift: 'other_gpu' } });
    const episode = new ServeEpisode(llmserve.choose({ task_id: 'static_workload', shift: 'other_gpu' }), 1);
    playWindows(episode, (step) => policy.act(step) as typeof bursty.defaultAction);
    assert.ok(Number.isFinite(episode.totals.reward));
  });
});
