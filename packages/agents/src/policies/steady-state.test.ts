import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { llmserve, ServeEpisode, type ServeTask } from '@servegym/environments';
import { findProfile } from '@servegym/profiles';
import { playSteadyState } from './steady-state.ts';

const { bursty_workload: bursty } = llmserve.tasks.shipped;
const [coding, crowd] = bursty.phases;

/** A task of one phase that lasts, with some of its figures changed. */
function steady(phase: ServeTask['phases'][number], change: Partial<typeof phase> = {}): ServeTask {
  return { ...bursty, windows: 30, phases: [{ ...phase, windows: [30, 30], ...change }] };
}

/** The last action of an episode that the advisor plays. */
function settled(task: ServeTask, profile = findProfile(task.profile)) {
  const episode = new ServeEpisode(task, 5, { profile });
  const act = playSteadyState(task, profile);
  while (!episode.done) {
    const { action: previousAction, window: stepIndex } = episode;
    episode.step(act({ observation: episode.observation(), previousAction, stepIndex }));
  }
  return episode;
}

describe('the steady state', () => {
  it('takes full precision where quality is dear and tokens come in time, else fewer bits', () => {
    const tierOf = (tpotMs: number, qualityValue: number) => {
      const { objectives } = bursty;
      const interactive = { ...objectives.interactive, tpotMs };
      const task = { ...steady(coding!, { qualityValue }), objectives: { ...objectives, interactive } };
      return settled(task).action.quantization_tier;
    };
    assert.equal(tierOf(30, 14), 'FP16');
    assert.notEqual(tierOf(6, 14), 'FP16');
    assert.notEqual(tierOf(30, 0.2), 'FP16');
  });

  it('gives a crowd a larger KV pool than a calm, and none to prompts that nobody can prefill', () => {
    const pool = (task: ServeTask) => settled(task).action.kv_budget_fraction;
    assert.ok(pool(steady(crowd!)) > 1.5 * pool(steady(coding!)));
    const long = { median: 12_000, sigma: 0.2, min: 8000, max: 16_000 };
    const interactive = { ...coding!.traffic.interactive!, prompt: long };
    assert.ok(pool(steady(coding!, { arrivalsPerSecond: [6, 6], traffic: { interactive } })) < 0.3);
  });

  it('leaves what a task masks, and starts from its default', () => {
    const masked: ServeTask = { ...steady(crowd!), maskedKnobs: ['quantization_tier', 'kv_budget_fraction'] };
    const { quantization_tier, kv_budget_fraction } = settled(masked).action;
    assert.deepEqual(
      [quantization_tier, kv_budget_fraction],
      [masked.defaultAction.quantization_tier, masked.defaultAction.kv_budget_fraction],
    );
    const [observation, previousAction] = [new ServeEpisode(bursty, 1).observation(), bursty.defaultAction];
    const act = playSteadyState(bursty, findProfile(bursty.profile));
    assert.deepEqual(act({ observation, previousAction, stepIndex: 0 }), bursty.defaultAction);
  });
});
