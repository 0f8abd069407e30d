import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  FleetEpisode,
  fleet,
  inferencegym,
  llmserve,
  SEED_SPLITS,
  ServeEpisode,
  type ServeTask,
} from '@servegym/environments';
import { findPolicy } from '../core/evaluate.ts';
import { evaluatePolicy } from '../core/evaluate-policy.ts';
import { loadFleetPolicy } from '../policies/fleet-policies.ts';
import { AGENTS } from '../registry.ts';
import { ANY_SERVER_LEARNER, decodeNetwork, FLEET_LEARNER, SERVE_LEARNER } from './learners.ts';
import { FeatureEncoder, RUNNING, TRUNCATED } from './learning-environment.ts';
import { createEnvironment, LEARNABLE } from './learning-tasks.ts';
import { type PpoUpdate, trainPpo } from './ppo.ts';
import { trainPolicy } from './train-policy.ts';
import { decodeActor, encodeActor } from './trained-actor.ts';

const task = llmserve.tasks.shipped.static_workload;
const codec = SERVE_LEARNER.codec(task);
const bins = Int32Array.from(codec.encode({ ...task.defaultAction, batch_cap: 64, kv_budget_fraction: 0.5 }));

const learned = (played: ServeTask) => createEnvironment({ environment: 'llmserve', settings: played });

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

describe('any server as a learner plays it', () => {
  it('is another server for another trace, and plays what a reset with `servers` plays', async () => {
    const environment = await createEnvironment({ environment: 'any-server', settings: null });
    const { features } = ANY_SERVER_LEARNER.environment;
    assert.equal(environment.observationSize, features.length);
    const start = (seed: number) => {
      const shown = new Float32Array(environment.observationSize).fill(Number.NaN);
      environment.reset(seed, shown);
      assert.ok(shown.every((value) => Number.isFinite(value) && Math.abs(value) < 50));
      return shown;
    };
    assert.ok(new Set(Array.from({ length: 30 }, (_, seed) => start(seed).join())).size > 15);
    assert.deepEqual(start(3), start(3));
    const bins = Int32Array.from(environment.initialBins);
    start(3);
    const shown = new Float32Array(environment.observationSize);
    const { reward } = environment.step(bins, shown);
    const task = llmserve.choose({ servers: 'any', seed: 3 });
    assert.equal(reward, new ServeEpisode(task, 3).step(ANY_SERVER_LEARNER.codec(task).decode(bins)));
  });

  it('gives a file that plays any task, on any server', async () => {
    const { policy } = await trainPolicy({
      ...{ environment: 'llmserve', task: 'any', algorithm: 'ppo', steps: 1, seed: 3 },
    });
    const found = findPolicy('llmserve', policy);
    assert.deepEqual(found.taskIds, llmserve.tasks.ids());
    const createFrom = (file: Uint8Array) => AGENTS.llmserve.loadPolicy(file).policy;
    for (const shift of ['other_gpu', undefined] as const) {
      const scenario = { ...(shift && { shift }) };
      const { tasks } = await evaluatePolicy(AGENTS.llmserve.playable({ scenario }), createFrom(policy), {
        taskIds: ['static_workload'],
        seeds: [SEED_SPLITS.test.first],
      });
      assert.ok(tasks[0]!.return.mean > 0);
    }
  });
});

describe('a task of llmserve', () => {
  const task = LEARNABLE.llmserve.learningTask({ task: 'static_workload' });
  const plan = { ...task, steps: 4_000, seed: 3 };

  it('is learned the same on any number of threads', async () => {
    const updates: PpoUpdate[] = [];
    const alone = await trainPpo({
      ...plan,
      threads: 1,
      onUpdate: (update) => updates.push(update),
    });
    assert.deepEqual(
      updates.map(({ steps }) => steps),
      [2048, 4096],
    );
    assert.equal(alone.steps, 4096);
    assert.ok(updates.every((update) => update.firstRatioError === 0));
    const together = await trainPpo({ ...plan, threads: 2 });
    assert.ok(Buffer.from(file(together)).equals(file(alone)));
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

const taskId = 'flash_crowds';

describe('fleet as a learner sees it', () => {
  it('writes all its numbers, and cuts episodes off after an hour', async () => {
    const task = fleet.tasks.shipped[taskId];
    const environment = await createEnvironment({ environment: 'fleet', settings: task });
    const observation = new Float32Array(environment.observationSize).fill(Number.NaN);
    environment.reset(5, observation);
    const first = observation.slice();
    const bins = Int32Array.from(environment.initialBins);
    for (let step = 1; step <= 120; step++) {
      const { end } = environment.step(bins, observation);
      assert.equal(end, step < 120 ? RUNNING : TRUNCATED);
      assert.ok(observation.every((value) => Number.isFinite(value) && Math.abs(value) < 50));
    }
    environment.reset(5, observation);
    assert.deepEqual(observation, first);
  });

  it('has a head for each knob that decides something', () => {
    const codec = FLEET_LEARNER.codec(fleet.tasks.shipped[taskId]);
    assert.ok(!('second_replicas' in codec.bins));
    const { defaultAction } = fleet.tasks.shipped[taskId];
    assert.deepEqual(codec.decode(codec.encode(defaultAction)), defaultAction);
  });
});

describe('a network that is trained on fleet', async () => {
  const { policy: file, metrics } = await trainPolicy({
    ...{ environment: 'fleet', task: taskId, algorithm: 'ppo' },
    ...{ steps: 1, seed: 3 },
  });
  const { weights, metadata } = decodeActor(file);

  it('learns, and plays its task alone', () => {
    assert.ok(metrics[0]!.minibatches! > 0);
    const { policy, taskId: trained } = loadFleetPolicy(file);
    assert.deepEqual([policy.name, trained], ['ppo', taskId]);
    policy.reset({ taskId, seed: 1 });
    const episode = new FleetEpisode({ ...fleet.tasks.shipped[taskId], windows: 2 }, 1);
    const observation = episode.observation();
    const step = { observation, reward: null, previousAction: episode.action, stepIndex: 0 };
    const action = policy.act(step);
    assert.deepEqual(policy.act(step), action);
    episode.step(action);
    assert.throws(() => policy.reset({ taskId: 'agents', seed: 1 }), { code: 'OTHER_TASK' });
  });

  const elsewhere: [Record<string, string>, string][] = [
    [{ environment: 'llmserve' }, 'POLICY_MISMATCH'],
    [{ version: '0' }, 'POLICY_MISMATCH'],
    [{ action_bins: '{}' }, 'POLICY_MISMATCH'],
    [{ task: 'nope' }, 'POLICY_TASK'],
  ];
  for (const [change, code] of elsewhere) {
    it(`is refused with ${code} when its ${Object.keys(change)} is another`, () => {
      const file = encodeActor(weights, { ...metadata, ...change });
      assert.throws(() => loadFleetPolicy(file), { code });
    });
  }
});

const { createPolicy, loadPolicy, playable } = AGENTS.inferencegym;
const SEEDS = [0, 1, 2].map((i) => SEED_SPLITS.test.first + i);

async function scoreOf(policy: ReturnType<typeof createPolicy>, taskId: number): Promise<number> {
  const { overall } = await evaluatePolicy(playable(), policy, {
    taskIds: [taskId],
    seeds: SEEDS,
  });
  return overall.mean;
}

describe('inferencegym as a learner sees it', () => {
  it('writes all its numbers, and cuts episodes off after 200 steps', async () => {
    const task = inferencegym.tasks.shipped[3];
    const environment = await createEnvironment({ environment: 'inferencegym', settings: { task } });
    const observation = new Float32Array(environment.observationSize).fill(Number.NaN);
    environment.reset(5, observation);
    const bins = Int32Array.from(environment.initialBins);
    for (let step = 1; step <= 200; step++) {
      const { end } = environment.step(bins, observation);
      assert.equal(end, step < 200 ? RUNNING : TRUNCATED);
      assert.ok(observation.every((value) => Number.isFinite(value) && Math.abs(value) < 50));
    }
  });

  it('takes PPO from the baseline to 0.65 and more on task 1 within 50,000 steps', async () => {
    const task = LEARNABLE.inferencegym.learningTask({ task: '1' });
    const { weights, steps } = await trainPpo({ ...task, steps: 30_000, seed: 0, threads: 1 });
    assert.ok(steps <= 50_000);
    const file = task.encodeActor(weights, { algorithm: 'ppo' });
    const { policy, taskId } = loadPolicy(file);
    assert.equal(taskId, 1);
    const [baseline, trained] = [await scoreOf(createPolicy('baseline'), 1), await scoreOf(policy, 1)];
    assert.ok(baseline > 0.3 && baseline < 0.4, `baseline ${baseline}`);
    assert.ok(trained >= 0.65, `trained ${trained}`);
    assert.throws(() => policy.reset({ taskId: 2, seed: 1 }), /the task 1 that the policy was trained for/);

    const { weights: same, metadata } = decodeActor(file);
    const elsewhere: Record<string, string>[] = [
      { environment: 'llmserve' },
      { version: '0' },
      { action_bins: '{}' },
      { task: '7' },
    ];
    for (const change of elsewhere) {
      assert.throws(() => loadPolicy(encodeActor(same, { ...metadata, ...change })), {
        code: /^POLICY_/,
      });
    }
  });
});

describe('the policies of inferencegym', () => {
  it('are named when one is not known', () => {
    assert.throws(() => createPolicy('heuristic'), /random, default, baseline, serving, got "heuristic"/);
  });

  it('score the same each time they play', async () => {
    assert.equal(await scoreOf(createPolicy('random'), 3), await scoreOf(createPolicy('random'), 3));
  });
});
