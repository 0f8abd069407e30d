import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  FLEET_TASKS,
  type FleetAction,
  FleetEpisode,
  type FleetObservation,
  recordedFleetReference,
} from '@servegym/environments';
import { trainPolicy } from '../../training/train-policy.ts';
import { loadFleetPolicy } from '../policies/fleet-policies.ts';
import { type SurgeParameters, SurgePolicy } from '../policies/surge-policy.ts';

const task = FLEET_TASKS.flash_crowds;
const calm = new FleetEpisode({ ...task, windows: 1 }, 1).observation();

const parameters: SurgeParameters = {
  ...{
    tokensPerReplica: 10_000,
    outputWeight: 0,
    trend: 0.5,
    backlog: 0.3,
    behindBelow: 0.5,
    prefixWeight: 2,
  },
  calm: { decay: 0.5, headroom: 0, admissionSeconds: 600, tokenBudget: 512 },
  behind: { decay: 1, headroom: 0.5, admissionSeconds: 0, tokenBudget: 2048 },
};

/** Settings that a policy asks for, window by window. */
function actionsOf(windows: readonly Partial<FleetObservation>[]): FleetAction[] {
  const policy = new SurgePolicy(parameters);
  policy.reset();
  let previousAction = task.defaultAction;
  return windows.map((window, i) => {
    const observation = { ...calm, ...window };
    previousAction = policy.act({ observation, previousAction, reward: 0, stepIndex: i + 1 });
    return previousAction;
  });
}

/** Ten requests a second of 4,000 tokens, as many over the last seconds unless `last` says otherwise. */
const window = (last = 10, attained = 1, waiting = 0): Partial<FleetObservation> => ({
  arrived_prompt_tokens_per_second: 40_000,
  prefix_cache_hit_rate: 0,
  arrivals_last_seconds: last,
  num_requests_waiting: waiting,
  interactive: { ...calm.interactive, arrivals_per_second: 10, slo_attainment: attained },
});

describe('the policy that is learned on fleet', () => {
  const replicas = (windows: readonly Partial<FleetObservation>[]) =>
    actionsOf(windows).map((action) => action.replicas);

  test('follows the change over the last seconds beyond the noise, and forgets by its decay', () => {
    // Three times the arrivals: 40,000 x (1 + 0.5 x (2 - 0.2)) = 76,000. Then the larger of 40,000 and half of it.
    assert.deepEqual(replicas([window(30), window()]), [8, 4]);
    assert.deepEqual(replicas([window(12)]), [4]);
  });

  test('adds the work that waits, divided over a window', () => {
    // 0.3 x 300 requests x 4,000 tokens / 30 s = 12,000.
    assert.deepEqual(replicas([window(10, 1, 300)]), [6]);
  });

  test('has settings of its own while most interactive requests come too late', () => {
    const [ahead, behind] = actionsOf([window(), window(10, 0.4)]);
    assert.deepEqual([ahead!.replicas, behind!.replicas], [4, 6]);
    assert.deepEqual([ahead!.max_num_batched_tokens, behind!.max_num_batched_tokens], [512, 2048]);
    assert.deepEqual([ahead!.admission_seconds, behind!.admission_seconds], [600, 0]);
    assert.deepEqual([ahead!.routing_queue, ahead!.routing_prefix], [0.5, 1]);
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
    const { rule } = recordedFleetReference(taskId)!;
    assert.equal(Math.round(json.parameters.tokensPerReplica), rule.tokensPerReplica);
    policy.reset({ taskId, seed: 1 });
    const episode = new FleetEpisode({ ...task, windows: 3 }, 1);
    while (!episode.done) {
      const { window: stepIndex, action: previousAction } = episode;
      const step = { observation: episode.observation(), reward: null, previousAction, stepIndex };
      episode.step(policy.act(step));
    }
    assert.equal(episode.action.max_num_batched_tokens, rule.tokenBudget);
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
