import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { llmserve, ServeEpisode, type ServeTask } from '@servegym/environments';
import { FeatureEncoder } from './feature-encoder.ts';
import { decodeNetwork, manyServersFeatures, SERVE_LEARNER } from './learners.ts';
import { RUNNING, TRUNCATED } from './learning-environment.ts';
import { createEnvironment, learningTask } from './learning-tasks.ts';
import { type PpoUpdate, trainPpo } from './ppo.ts';
import type { PpoCheckpoint } from './ppo-checkpoint.ts';

const task = llmserve.tasks.shipped.static_workload;
const codec = SERVE_LEARNER.codec(task);
const bins = Int32Array.from(codec.encode({ ...task.defaultAction, batch_cap: 64, kv_budget_fraction: 0.5 }));

const learned = (played: ServeTask, randomise = false) =>
  createEnvironment({ environment: 'llmserve', task: played, randomise });

describe('a task of llmserve as a learner plays it', () => {
  it('plays the episode of its task and seed, and shows what a policy would be shown', async () => {
    const environment = await learned(task);
    const features = new Float32Array(environment.observationSize);
    const episode = new ServeEpisode(task, 7);
    const encoder = new FeatureEncoder(llmserve.features);
    const expected = new Float32Array(environment.observationSize);
    const assertShown = () => {
      const { action: previousAction } = episode;
      encoder.encode(episode.observation(), previousAction, expected);
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

  it('is cut off at the end of an episode, for the server would go on', async () => {
    const environment = await learned(task);
    const features = new Float32Array(environment.observationSize);
    environment.reset(1, features);
    const ends = Array.from({ length: task.windows }, () => environment.step(bins, features).end);
    assert.deepEqual(new Set(ends.slice(0, -1)), new Set([RUNNING]));
    assert.equal(ends.at(-1), TRUNCATED);
  });

  it('starts from the default configuration', async () => {
    const hard = llmserve.tasks.shipped.adversarial_multitenant;
    const { initialBins } = await learned(hard);
    assert.deepEqual(SERVE_LEARNER.codec(hard).decode(initialBins), hard.defaultAction);
  });
});

describe('a randomised task as a learner plays it', () => {
  it('is another server for another trace, and shows which', async () => {
    const environment = await learned(task, true);
    const seen = (seed: number) => {
      const features = new Float32Array(environment.observationSize);
      environment.reset(seed, features);
      return features.slice(llmserve.features.length);
    };
    assert.equal(environment.observationSize, manyServersFeatures(llmserve).length);
    const servers = new Set(Array.from({ length: 30 }, (_, seed) => seen(seed).join()));
    assert.ok(servers.size > 5, `${servers.size}`);
    assert.deepEqual(seen(3), seen(3));
    const randomised = learningTask('llmserve', { task: 'static_workload', randomise: true });
    assert.equal(randomised.metadata.randomise, 'true');
  });
});

describe('a task of llmserve', () => {
  const task = learningTask('llmserve', { task: 'static_workload' });
  const plan = { ...task, steps: 4_000, seed: 3 };

  it('is learned the same on any number of threads, and after a stop', async () => {
    const updates: PpoUpdate[] = [];
    const checkpoints: PpoCheckpoint[] = [];
    const alone = await trainPpo({
      ...plan,
      threads: 1,
      onUpdate(update, checkpoint) {
        updates.push(update);
        checkpoints.push(checkpoint());
      },
    });
    assert.deepEqual(
      updates.map(({ steps }) => steps),
      [2048, 4096],
    );
    assert.equal(alone.steps, 4096);
    assert.ok(updates.every((update) => update.firstRatioError === 0));
    const [checkpoint] = checkpoints;
    assert.ok(checkpoint!.episodes.some(({ actions }) => actions.length > 0));
    const resumed = await trainPpo({ ...plan, threads: 2, start: { checkpoint: checkpoint! } });
    assert.ok(Buffer.from(file(resumed)).equals(file(alone)));
  });

  it('stops early when told to, and keeps what it has learned', async () => {
    const stop = new AbortController();
    const { steps } = await trainPpo({
      ...{ ...plan, steps: 1e9, threads: 1, signal: stop.signal },
      onUpdate: () => stop.abort(),
    });
    assert.equal(steps, 2048);
  });

  function file({ weights, steps }: Awaited<ReturnType<typeof trainPpo>>): Uint8Array {
    const bytes = task.encodeActor(weights, { steps });
    assert.equal(decodeNetwork(SERVE_LEARNER, bytes).taskId, 'static_workload');
    return bytes;
  }
});
