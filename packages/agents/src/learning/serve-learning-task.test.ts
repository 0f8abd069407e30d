import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { llmserve, ServeEpisode } from '@servegym/environments';
import { FeatureEncoder } from './feature-encoder.ts';
import { RUNNING, TRUNCATED } from './learning-environment.ts';
import { decodeServeActor } from './policy-files.ts';
import { type PpoUpdate, trainPpo } from './ppo.ts';
import type { PpoCheckpoint } from './ppo-checkpoint.ts';
import { MANY_SERVERS_FEATURES, ServeActionCodec } from './serve-encoding.ts';
import { serveLearningEnvironment, serveLearningTask } from './serve-learning-task.ts';

const task = llmserve.tasks.shipped.static_workload;
const codec = new ServeActionCodec(task);
const bins = Int32Array.from(codec.encode({ ...task.defaultAction, batch_cap: 64, kv_budget_fraction: 0.5 }));

describe('serveLearningEnvironment', () => {
  it('plays the episode of its task and seed, and shows what a policy would be shown', () => {
    const environment = serveLearningEnvironment({ task, randomise: false });
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

  it('is cut off at the end of an episode, for the server would go on', () => {
    const environment = serveLearningEnvironment({ task, randomise: false });
    const features = new Float32Array(environment.observationSize);
    environment.reset(1, features);
    const ends = Array.from({ length: task.windows }, () => environment.step(bins, features).end);
    assert.deepEqual(new Set(ends.slice(0, -1)), new Set([RUNNING]));
    assert.equal(ends.at(-1), TRUNCATED);
  });

  it('starts from the default configuration', () => {
    const hard = llmserve.tasks.shipped.adversarial_multitenant;
    const { initialBins } = serveLearningEnvironment({ task: hard, randomise: false });
    assert.deepEqual(new ServeActionCodec(hard).decode(initialBins), hard.defaultAction);
  });
});

describe('a randomised task as a learner plays it', () => {
  it('is another server for another trace, and shows which', () => {
    const environment = serveLearningEnvironment({ task, randomise: true });
    const seen = (seed: number) => {
      const features = new Float32Array(environment.observationSize);
      environment.reset(seed, features);
      return features.slice(llmserve.features.length);
    };
    assert.equal(environment.observationSize, MANY_SERVERS_FEATURES.length);
    const servers = new Set(Array.from({ length: 30 }, (_, seed) => seen(seed).join()));
    assert.ok(servers.size > 5, `${servers.size}`);
    assert.deepEqual(seen(3), seen(3));
    const randomised = serveLearningTask('static_workload', undefined, {}, true);
    assert.equal(randomised.metadata.randomise, 'true');
  });
});

describe('a task of llmserve', () => {
  const task = serveLearningTask('static_workload');
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
    assert.equal(decodeServeActor(bytes).taskId, 'static_workload');
    return bytes;
  }
});
