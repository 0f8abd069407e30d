import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SERVE_TASKS, ServeEpisode } from '@servegym/environments';
import { RUNNING, TRUNCATED } from '../../learning/learning-environment.ts';
import { ServeActionCodec } from './serve-action-codec.ts';
import { ServeLearningEnvironment } from './serve-learning-environment.ts';
import { ServeObservationEncoder } from './serve-observation-encoder.ts';

const task = SERVE_TASKS.static_workload;
const codec = new ServeActionCodec(task);
const bins = Int32Array.from(codec.encode({ ...task.defaultAction, batch_cap: 64, kv_budget_fraction: 0.5 }));

describe('ServeLearningEnvironment', () => {
  it('plays the episode of its task and seed, and shows what a policy would be shown', () => {
    const environment = new ServeLearningEnvironment(task);
    const features = new Float32Array(environment.observationSize);
    const episode = new ServeEpisode(task, 7);
    const encoder = new ServeObservationEncoder();
    const expected = new Float32Array(environment.observationSize);
    const assertShown = () => {
      const { action: previousAction } = episode;
      encoder.encode({ observation: episode.observation(), previousAction }, expected);
      assert.deepEqual(features, expected);
    };
    for (let round = 0; round < 2; round++) {
      environment.reset(7, features);
      if (round === 0) assertShown();
    }
    for (let window = 0; window < 3; window++) {
      const { reward } = environment.step(bins, features);
      assert.equal(reward, episode.step(codec.decode(bins)));
      assertShown();
    }
  });

  it('is cut off at the end of an episode, for the server would go on', () => {
    const environment = new ServeLearningEnvironment(task);
    const features = new Float32Array(environment.observationSize);
    environment.reset(1, features);
    const ends = Array.from({ length: task.windows }, () => environment.step(bins, features).end);
    assert.deepEqual(new Set(ends.slice(0, -1)), new Set([RUNNING]));
    assert.equal(ends.at(-1), TRUNCATED);
  });

  it('starts from the default configuration', () => {
    const hard = SERVE_TASKS.adversarial_multitenant;
    const { initialBins } = new ServeLearningEnvironment(hard);
    assert.deepEqual(new ServeActionCodec(hard).decode(initialBins), hard.defaultAction);
  });
});
