import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  firstSeeds,
  llmserve,
  type ServeAction,
  ServeEpisode,
  type ServeObservation,
  type ServeTask,
} from '@servegym/environments';
import { mean } from '@servegym/simulator/statistics';
import { ruleReturn, tuneRule } from '../learning/coordinate-search.ts';
import { banditPolicy } from './bandit-policy.ts';
import { rulePolicy, type ServeRule } from './rule-policies.ts';

const { defaultAction } = llmserve.tasks.shipped.bursty_workload;

/** Plays a bandit under the rewards of `pay`, with alternately quiet and busy stretches of 10 windows. */
function play(windows: number, pay: (cap: number, isBusy: boolean) => number) {
  const policy = banditPolicy([32, 64, 96, 256].map((batch_cap) => ({ ...defaultAction, batch_cap })));
  policy.reset({ taskId: 'bursty_workload', seed: 1 });
  const start = new ServeEpisode(llmserve.tasks.shipped.bursty_workload, 1).observation();
  let reward: number | null = null;
  let previousAction = defaultAction;
  return Array.from({ length: windows }, (_, stepIndex) => {
    const isBusy = Math.floor(stepIndex / 10) % 2 === 1;
    const observation = {
      ...start,
      request_arrival_rate: isBusy ? 30 : 3,
      mean_prompt_length: 200,
      step_index: stepIndex,
    };
    previousAction = policy.act({ observation, reward, previousAction, stepIndex });
    reward = pay(previousAction.batch_cap, isBusy);
    return { cap: previousAction.batch_cap, isBusy };
  });
}

describe('bandit', () => {
  it('tries every configuration, and then stays with the one that pays', () => {
    const played = play(200, (cap) => (cap === 256 ? 0.9 : 0.3));
    assert.equal(new Set(played.map(({ cap }) => cap)).size, 4);
    const late = played.slice(100).filter(({ cap }) => cap === 256).length;
    assert.ok(late > 75, `${late} of the last 100 windows`);
  });

  it('learns that a busy window wants something else than a quiet one', () => {
    const played = play(400, (cap, isBusy) => ((cap === 256) === isBusy ? 0.9 : 0.1)).slice(200);
    const share = (isBusy: boolean) => {
      const windows = played.filter((window) => window.isBusy === isBusy);
      return windows.filter(({ cap }) => cap === 256).length / windows.length;
    };
    assert.ok(share(true) > 0.5 && share(false) < 0.3, `${share(true)} busy, ${share(false)} quiet`);
  });
});

const task = llmserve.tasks.shipped.bursty_workload;
const [constant] = llmserve.anchors.configurations(task);
const rule: ServeRule = {
  kept: { ...constant!, kv_budget_fraction: 0.4 },
  parameters: { batchCap: 96, calmDepth: 5, busyDepth: 1, busyRate: 8, kvTarget: 0.8, headroomGb: 2 },
};
const empty = new ServeEpisode(task, 0).observation();

function react(
  seen: Partial<ServeObservation>,
  { stepIndex = 1, taskId = task.id }: { stepIndex?: number; taskId?: string } = {},
): ServeAction {
  const policy = rulePolicy(rule);
  policy.reset({ taskId, seed: 0 });
  return policy.act({
    observation: { ...empty, gpu_memory_used_gb: 20, kv_cache_occupancy: 0.8, ...seen },
    reward: 0.5,
    previousAction: rule.kept,
    stepIndex,
  });
}

describe('rule', () => {
  it('starts with the configuration that it keeps', () => {
    assert.deepEqual(react({}, { stepIndex: 0 }), rule.kept);
  });

  it('has one batch cap, drafts by the arrival rate, and leaves everything but memory alone', () => {
    for (const [request_arrival_rate, speculation_depth] of [
      [7.9, 5],
      [8, 1],
    ] as const) {
      assert.deepEqual(react({ request_arrival_rate }), { ...rule.kept, batch_cap: 96, speculation_depth });
    }
  });

  it('makes the pool as large as its use asks for, within what tenants leave', () => {
    assert.equal(react({ kv_cache_occupancy: 1 }).kv_budget_fraction, 0.5);
    assert.equal(react({ kv_cache_occupancy: 0.4 }).kv_budget_fraction, 0.2);
    // A GPU of 42.3 GB that is full but for 1 GB, a less than what is to stay free.
    const crowded = react({ kv_cache_occupancy: 1, gpu_memory_used_gb: 41.3 }).kv_budget_fraction;
    assert.ok(crowded < 0.4 && crowded > 0.3, `${crowded}`);
    assert.equal(react({ gpu_memory_used_gb: 200 }).kv_budget_fraction, 0.1);
  });

  it('holds the knobs that a task masks', () => {
    const masked: ServeTask = {
      ...task,
      id: 'rule_masked',
      maskedKnobs: ['speculation_depth', 'kv_budget_fraction'],
    };
    llmserve.tasks.add(masked);
    const { speculation_depth, kv_budget_fraction } = react({ kv_cache_occupancy: 1 }, { taskId: masked.id });
    assert.deepEqual(
      { ...masked.defaultAction, speculation_depth, kv_budget_fraction },
      masked.defaultAction,
    );
  });

  for (const taskId of ['bursty_workload', 'adversarial_multitenant'] as const) {
    it(`as tuned, beats the best constant on fresh traffic (${taskId})`, () => {
      const task = llmserve.tasks.shipped[taskId];
      const [constant] = llmserve.anchors.configurations(task);
      const gains = firstSeeds('test', 8).map((seed) => {
        const requests = llmserve.drawRequests(task, seed);
        const policy = rulePolicy();
        policy.reset({ taskId, seed });
        const episode = new ServeEpisode(task, seed, { requests });
        while (!episode.done) {
          const { action: previousAction, window: stepIndex } = episode;
          const observation = episode.observation();
          episode.step(policy.act({ observation, reward: null, previousAction, stepIndex }));
        }
        return episode.totals.reward - llmserve.anchors.constantReturn(task, seed, requests, constant!);
      });
      assert.ok(mean(gains) > 1, `${gains}`);
    });
  }
});

describe('tuneRule', () => {
  const brief = { ...task, windows: 24 };
  const tune = () => tuneRule(brief, constant!, { seed: 0, traces: { few: 1, many: 2 } });

  it('finds parameters that earn more than keeping the configuration, the same ones again', async () => {
    const { rule, meanReturn } = await tune();
    assert.deepEqual((await tune()).rule, rule);
    assert.deepEqual(rule.kept, constant);
    const seeds = firstSeeds('test', 4);
    const traffic = seeds.map((seed) => ({ seed, requests: llmserve.drawRequests(brief, seed) }));
    const earned = mean(traffic.map((each) => ruleReturn(brief, rule, each)));
    const kept = mean(
      traffic.map(({ seed, requests }) => llmserve.anchors.constantReturn(brief, seed, requests, constant!)),
    );
    assert.ok(meanReturn > 0);
    assert.ok(earned > kept, `${earned} and ${kept}`);
  });
});
