import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { llmserve } from '@servegym/environments';
import { encodeServeConstant, readServeConstant, type ServeConstant } from './policy-files.ts';

const constant: ServeConstant = {
  taskId: 'static_workload',
  action: { ...llmserve.defaultAction, batch_cap: 48 },
  training: { algorithm: 'static', episodes: 100 },
};

describe('a tuned constant', () => {
  it('comes back from its file', () => {
    assert.deepEqual(readServeConstant(JSON.parse(encodeServeConstant(constant))), constant);
  });

  it('is refused where it does not belong, or when it is none', () => {
    const text = encodeServeConstant(constant);
    for (const [file, message] of [
      [text.replace('llmserve', 'other'), /Expected a policy for the environment llmserve, got other/],
      [
        text.replace(/"version": "[^"]*"/, '"version": "0.0.0"'),
        /for the version of llmserve .*, got 0\.0\.0/,
      ],
      [
        text.replace('static_workload', 'holiday'),
        /Expected a policy for one of static_workload, .*, got one for holiday/,
      ],
      [text.replace('48', '4800'), /Expected an action, got .*4800/],
    ] as const) {
      assert.throws(() => readServeConstant(JSON.parse(file)), { code: /^POLICY_/, message });
    }
  });
});
