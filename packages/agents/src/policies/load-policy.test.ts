import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { llmserve } from '@servegym/environments';
import { encodeJsonPolicy } from '../learning/learners.ts';
import type { Regimes } from './regime-policy.ts';
import { loadServePolicy } from './serve-policies.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const action = { ...llmserve.defaultAction, batch_cap: 48 };
const constant = encodeJsonPolicy(llmserve, 'static_workload', { action }, { algorithm: 'static' });
const regimes: Regimes = [
  { center: { arrivals: 1, prompts: 5 }, action: llmserve.defaultAction },
  { center: { arrivals: 3, prompts: 5 }, action: { ...llmserve.defaultAction, batch_cap: 256 } },
];
const table = (content: Regimes) =>
  encodeJsonPolicy(llmserve, 'bursty_workload', { regimes: content }, { algorithm: 'cem' });

describe('a policy in JSON', () => {
  it('is loaded from what each algorithm writes', () => {
    for (const [text, name, taskId] of [
      [constant, 'static-tuned', 'static_workload'],
      [table(regimes), 'cem', 'bursty_workload'],
    ] as const) {
      const { policy, taskId: of } = loadServePolicy(bytes(text));
      assert.deepEqual([policy.name, of], [name, taskId]);
    }
  });

  it('plays the configuration that its file holds', () => {
    const { policy } = loadServePolicy(bytes(constant));
    policy.reset({ taskId: 'static_workload', seed: 0 });
    assert.deepEqual(policy.act({} as never), action);
  });

  it('is refused where it does not belong, or when it is none', () => {
    for (const [file, message] of [
      ['{', /Expected a policy in JSON/],
      [constant.replace('llmserve', 'other'), /Expected a policy for the environment llmserve, got other/],
      [constant.replace('48', '4800'), /Expected an action, got .*4800/],
      ...[constant, table(regimes)].flatMap((text): [string, RegExp][] => [
        [
          text.replace(/"version": "[^"]*"/, '"version": "0.0.0"'),
          /for the version of llmserve .*, got 0\.0\.0/,
        ],
        [
          text.replace(/(static|bursty)_workload/, 'holiday'),
          /Expected a policy for one of static_workload, .*, got one for holiday/,
        ],
      ]),
      [table([]), /Expected at least one regime, .* got .*\[\]/],
      [table(regimes).replace('"arrivals": 3', '"arrivals": null'), /each with a center and an action/],
      [table(regimes).replace('256', '2560'), /each with a center and an action/],
    ] as [string, RegExp][]) {
      assert.throws(() => loadServePolicy(bytes(file)), { code: /^POLICY_/, message });
    }
  });
});
