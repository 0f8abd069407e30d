import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { llmserve } from '@servegym/environments';
import { encodeRegimeTable, encodeServeConstant, type RegimeTable } from '../learning/policy-files.ts';
import { loadTrainedPolicy } from './trained-policies.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const table: RegimeTable = {
  taskId: 'bursty_workload',
  regimes: [
    { center: { arrivals: 1, prompts: 5 }, action: llmserve.defaultAction },
    { center: { arrivals: 3, prompts: 5 }, action: { ...llmserve.defaultAction, batch_cap: 256 } },
  ],
  training: { algorithm: 'cem' },
};

describe('loadTrainedPolicy', () => {
  it('loads what each algorithm writes', () => {
    const constant = { taskId: 'static_workload', action: llmserve.defaultAction, training: {} } as const;
    for (const [text, name, taskId] of [
      [encodeServeConstant(constant), 'static-tuned', 'static_workload'],
      [encodeRegimeTable(table), 'cem', 'bursty_workload'],
    ] as const) {
      const { policy, taskId: of } = loadTrainedPolicy(bytes(text));
      assert.deepEqual([policy.name, of], [name, taskId]);
    }
  });

  it('refuses what is no policy, or one for something else', () => {
    const text = encodeRegimeTable(table);
    for (const [file, message] of [
      ['{', /Expected a policy in JSON/],
      [text.replace(/"version": "[^"]*"/, '"version": "0.0.0"'), /version of llmserve .*, got 0\.0\.0/],
      [
        text.replace('bursty_workload', 'holiday'),
        /Expected a policy for one of static_workload, .*, got one for holiday/,
      ],
      [encodeRegimeTable({ ...table, regimes: [] }), /Expected at least one regime, got none/],
      [text.replace('"arrivals": 3', '"arrivals": null'), /Expected a regime to have a center and an action/],
      [text.replace('256', '2560'), /Expected a regime to have a center and an action/],
    ] as const) {
      assert.throws(() => loadTrainedPolicy(bytes(file)), { code: /^POLICY_/, message });
    }
  });
});
