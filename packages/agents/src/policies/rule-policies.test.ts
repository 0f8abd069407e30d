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
import { rulePolicy, type ServeRule } from './rule-policies.ts';

const task = llmserve.tasks.shipped.bursty_workload;
const [constant] = llmserve.anchors.configurations(task);
const rule: ServeRule = {
  kept: { ...constant!, quantization_tier: 'INT8', kv_budget_fraction: 0.4 },
  parameters: {
    ...{ batchCap: 96, fp16Depth: 5, int8Depth: 2, int4Depth: 1, rush: 0.8, longPrompt: 400, dear: 0.1 },
    ...{ kvTarget: 0.5, headroomGb: 2 },
  },
};
const empty = new ServeEpisode(task, 0).observation();
const calm = { prompt_load: 0.1, token_load: 0.1, int8_charge: 0.3, kv_held: 0.1 };

/** What the rule does after some windows, each with these figures. */
function react(
  windows: readonly (Partial<Omit<ServeObservation, 'relative'>> & {
    readonly relative?: Partial<ServeObservation['relative']>;
  })[],
  { taskId = task.id }: { taskId?: string } = {},
): ServeAction {
  const policy = rulePolicy(rule);
  policy.reset({ taskId, seed: 0 });
  const base = { ...empty, gpu_memory_used_gb: 20, mean_prompt_length: 600 };
  let previousAction = rule.kept;
  for (const [stepIndex, { relative, ...seen }] of [{}, ...windows].entries()) {
    const observation = { ...base, ...seen, relative: { ...empty.relative, ...calm, ...relative } };
    previousAction = policy.act({ observation, reward: 0.5, previousAction, stepIndex });
  }
  return previousAction;
}

describe('rule', () => {
  it('starts with the configuration that it keeps', () => {
    assert.deepEqual(react([]), rule.kept);
  });

  it('goes to FP16 when quality is dear, prompts are long and it is calm, to INT4 when not, to INT8 in a rush', () => {
    const tierAfter = (...windows: Parameters<typeof react>[0]) => react(windows).quantization_tier;
    assert.equal(tierAfter({}, {}), 'FP16');
    assert.equal(tierAfter({ mean_prompt_length: 399 }, { mean_prompt_length: 399 }), 'INT4');
    const cheap = { relative: { int8_charge: 0.09 } };
    assert.equal(tierAfter(cheap, cheap), 'INT4');
    const rush = { relative: { prompt_load: 0.5, token_load: 0.3 } };
    assert.equal(tierAfter({}, {}, rush, rush), 'INT8');
  });

  it('changes the precision only when two windows ask for it', () => {
    assert.equal(react([{}]).quantization_tier, 'INT8');
    assert.equal(react([{}, { mean_prompt_length: 10 }, {}]).quantization_tier, 'INT8');
  });

  it('drafts by the precision, with one batch cap and interactive requests first', () => {
    const { speculation_depth, batch_cap, priority_routing } = react([{}, {}]);
    assert.deepEqual([speculation_depth, batch_cap, priority_routing], [5, 96, true]);
  });

  it('makes the pool as large as its use asks for, within what tenants leave', () => {
    const pool = (kv_held: number, gpu_memory_used_gb = 20) =>
      react([{ gpu_memory_used_gb, relative: { kv_held } }]).kv_budget_fraction;
    assert.ok(Math.abs(pool(0.2) - 2 * pool(0.1)) < 0.02);
    // A GPU of 42.3 GB that is full but for 1 GB, a less than what is to stay free.
    const crowded = pool(0.4, 41.3);
    assert.ok(crowded < 0.4 && crowded > 0.3, `${crowded}`);
    assert.equal(pool(0.4, 200), 0.1);
  });

  it('holds the knobs that a task masks', () => {
    const masked: ServeTask = {
      ...task,
      id: 'rule_masked',
      maskedKnobs: ['speculation_depth', 'kv_budget_fraction'],
    };
    llmserve.tasks.add(masked);
    const { speculation_depth, kv_budget_fraction } = react([{ relative: { kv_held: 0.9 } }], {
      taskId: masked.id,
    });
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
