import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type FleetAction, FleetEpisode, type FleetObservation, fleet } from '@servegym/environments';
import { type DemandParameters, DemandPolicy } from '../policies/demand-policy.ts';
import { loadFleetPolicy } from '../policies/fleet-policies.ts';
import { trainPolicy } from './train-policy.ts';

const task = fleet.tasks.shipped.flash_crowds;
const calm = new FleetEpisode({ ...task, windows: 1 }, 1).observation();

const parameters: DemandParameters = {
  ...{ tokensPerReplica: 10_000, outputWeight: 0, decay: 0.5, surge: 0, spareReplicas: 0, backlog: 0.3 },
  ...{ admissionSeconds: 0.25, prefixWeight: 2, tokenBudget: 600.4 },
};

/** Settings that a policy asks for, window by window. */
function actionsOf(
  windows: readonly Partial<FleetObservation>[],
  changed: Partial<DemandParameters> = {},
): FleetAction[] {
  const policy = new DemandPolicy({ ...parameters, ...changed });
  policy.reset();
  let previousAction = task.defaultAction;
  return windows.map((window, i) => {
    const observation = { ...calm, ...window };
    previousAction = policy.act({ observation, previousAction, reward: 0, stepIndex: i + 1 });
    return previousAction;
  });
}

/** Requests a second of so many prompt tokens. */
const window = (arrivals: number, tokens = 4000, waiting = 0): Partial<FleetObservation> => ({
  arrived_prompt_tokens_per_second: arrivals * tokens,
  prefix_cache_hit_rate: 0,
  num_requests_waiting: waiting,
  interactive: { ...calm.interactive, arrivals_per_second: arrivals },
  batch: { ...calm.batch, arrivals_per_second: 0 },
  best_effort: { ...calm.best_effort, arrivals_per_second: 0 },
});

describe('the policy that is learned on fleet', () => {
  const replicas = (windows: readonly Partial<FleetObservation>[], changed?: Partial<DemandParameters>) =>
    actionsOf(windows, changed).map((action) => action.replicas);

  test('gives the requests of a window their mean work over the last minutes, and forgets by its decay', () => {
    // 40,000. Then 4,000 + 0.05 x (8,000 - 4,000) = 4,200 tokens a request: 42,000, and half of it for two windows.
    assert.deepEqual(replicas([window(10), window(10, 8000), window(0), window(0)]), [4, 5, 3, 2]);
  });

  test('meets a sudden rise with more than it asks for, once', () => {
    // 100,000 + 0.6 x (100,000 - 1.25 x 40,000) = 130,000; 48,000 is no sudden rise from 40,000.
    assert.deepEqual(replicas([window(10), window(25), window(25)], { surge: 0.6 }), [4, 13, 10]);
    assert.deepEqual(replicas([window(10), window(12)], { surge: 0.6 }), [4, 5]);
  });

  test('adds the work that waits, divided over a window, and the spare replicas before it rounds up', () => {
    // 0.3 x 300 requests x 4,000 tokens / 30 s = 12,000.
    assert.deepEqual(replicas([window(10, 4000, 300)]), [6]);
    assert.deepEqual(replicas([window(9)], { spareReplicas: 0.4 }), [4]);
    assert.deepEqual(replicas([window(9)], { spareReplicas: 0.6 }), [5]);
  });

  test('asks for one replica at least, and for those that there are at most', () => {
    assert.deepEqual(replicas([window(0), window(1000)]), [1, calm.server.max_replicas]);
  });

  test('keeps its settings, inside what the environment takes', () => {
    const [action] = actionsOf([window(10)]);
    assert.deepEqual([action!.max_num_batched_tokens, action!.admission_seconds], [600, 0.25]);
    assert.deepEqual([action!.routing_queue, action!.routing_prefix], [0.5, 1]);
    const [clipped] = actionsOf([window(10)], { tokenBudget: 100, admissionSeconds: 1e6 });
    assert.deepEqual([clipped!.max_num_batched_tokens, clipped!.admission_seconds], [512, 600]);
  });

  test('starts each episode anew', () => {
    const policy = new DemandPolicy(parameters);
    const act = (seen: Partial<FleetObservation>) =>
      policy.act({
        ...{ observation: { ...calm, ...seen }, previousAction: task.defaultAction },
        ...{ reward: 0, stepIndex: 1 },
      }).replicas;
    policy.reset();
    assert.equal(act(window(10, 8000)), 8);
    policy.reset();
    assert.equal(act(window(10)), 4);
  });
});

describe('a training on fleet', async () => {
  const run = { environment: 'fleet', task: 'flash_crowds', algorithm: 'cem', steps: 1, seed: 0 } as const;
  // Stopped before the first generation: the policy is the one that the search begins with.
  const { files } = await trainPolicy(run, { signal: AbortSignal.abort() });
  const json = JSON.parse(new TextDecoder().decode(files.policy));

  test('begins at the tuned rule, and writes a file that can be played', () => {
    const { policy, taskId } = loadFleetPolicy(files.policy);
    assert.equal(taskId, 'flash_crowds');
    const { rule } = fleet.anchors.reference(taskId)!;
    assert.equal(Math.round(json.parameters.tokensPerReplica), rule.tokensPerReplica);
    policy.reset({ taskId, seed: 1 });
    const episode = new FleetEpisode({ ...task, windows: 3 }, 1);
    while (!episode.done) {
      const { window: stepIndex, action: previousAction } = episode;
      const step = { observation: episode.observation(), reward: null, previousAction, stepIndex };
      episode.step(policy.act(step));
    }
    assert.equal(episode.action.max_num_batched_tokens, Math.round(1.15 * rule.tokenBudget));
    assert.ok(episode.totals.completed > 0);
  });

  for (const [change, code] of [
    [{ environment: 'llmserve' }, 'POLICY_MISMATCH'],
    [{ version: '0' }, 'POLICY_MISMATCH'],
    [{ task: 'nope' }, 'POLICY_TASK'],
    [{ parameters: { ...json.parameters, tokensPerReplica: 0 } }, 'POLICY_FILE'],
    [{ parameters: undefined }, 'POLICY_FILE'],
  ] as const) {
    test(`a file with ${Object.keys(change)} changed is refused with ${code}`, () => {
      const file = Buffer.from(JSON.stringify({ ...json, ...change }));
      assert.throws(() => loadFleetPolicy(file), { code });
    });
  }
});
