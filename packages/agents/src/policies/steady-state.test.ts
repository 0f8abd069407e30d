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

/** The end of an episode that the advisor plays. */
function settled(task: ServeTask, seed = 5, onWindow?: (episode: ServeEpisode) => unknown) {
  const profile = findProfile(task.profile);
  const episode = new ServeEpisode(task, seed, { profile });
  const act = playSteadyState(task, profile);
  while (!episode.done) {
    const { action: previousAction, window: stepIndex } = episode;
    episode.step(act({ observation: episode.observation(), previousAction, stepIndex }));
    onWindow?.(episode);
  }
  return episode;
}

/** KV pools of the windows. */
function pools(task: ServeTask): number[] {
  const seen: number[] = [];
  settled(task, 5, ({ action }) => seen.push(action.kv_budget_fraction));
  return seen;
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
    const pool = (task: ServeTask) => pools(task)[20]!;
    assert.ok(pool(steady(crowd!)) > 1.5 * pool(steady(coding!)));
    const long = { median: 12_000, sigma: 0.2, min: 8000, max: 16_000 };
    const interactive = { ...coding!.traffic.interactive!, prompt: long };
    assert.ok(pool(steady(coding!, { arrivalsPerSecond: [6, 6], traffic: { interactive } })) < 0.3);
  });

  it('serves a backlog that it can serve before the end, and gives up one that it cannot', () => {
    const crowded = (windows: number) => {
      const first = { ...crowd!, windows: [windows, windows] as const, arrivalsPerSecond: [40, 40] as const };
      return pools({ ...bursty, windows: 60, phases: [first, { ...coding!, windows: [60, 60] }] });
    };
    const served = crowded(8);
    assert.ok(Math.min(...served.slice(4, 12)) > 0.8 && served.at(-1)! < 0.3);
    assert.ok(crowded(60)[40]! < 0.15);
  });

  it('leaves the memory that tenants will take', () => {
    const { adversarial_multitenant: task } = llmserve.tasks.shipped;
    let most = 0;
    settled(task, 1_000_032, ({ action, cluster }) => {
      most = Math.max(most, action.kv_budget_fraction);
      assert.ok(cluster.events.every(({ kind }) => kind !== 'oom'));
    });
    assert.ok(most > 0.4);
  });

  it('configures one engine for half the traffic as it does two for all of it', () => {
    const task = steady(crowd!);
    const profile = findProfile(task.profile);
    const [one, two] = [playSteadyState(task, profile), playSteadyState(task, profile)];
    const episode = new ServeEpisode(task, 5, { profile });
    const shared = ['queue_depth', 'active_requests', 'throughput_tps', 'request_arrival_rate'] as const;
    while (!episode.done) {
      const observation = episode.observation();
      const { action: previousAction, window: stepIndex } = episode;
      // An odd request makes no half.
      for (const figure of shared) observation[figure] = 2 * Math.floor(observation[figure] / 2);
      const halves = Object.fromEntries(shared.map((figure) => [figure, observation[figure] / 2]));
      const half = { ...observation, ...halves, server: { ...observation.server, engines: 1 } };
      const action = two({ observation, previousAction, stepIndex });
      assert.deepEqual(one({ observation: half, previousAction, stepIndex }), action);
      episode.step(action);
    }
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
