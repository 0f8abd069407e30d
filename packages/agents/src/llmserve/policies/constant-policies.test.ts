import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DEFAULT_ACTION } from '@servegym/environments';
import { StaticPolicy } from './baseline-policies.ts';

describe('static-tuned', () => {
  const action = { ...DEFAULT_ACTION, batch_cap: 48 };
  const policy = new StaticPolicy({ taskId: 'bursty_workload', action, training: {} });

  it('keeps its configuration', () => {
    policy.reset({ taskId: 'bursty_workload', seed: 1 });
    assert.equal(policy.act(), action);
  });

  it('refuses another task', () => {
    assert.throws(() => policy.reset({ taskId: 'static_workload', seed: 1 }), {
      code: 'OTHER_TASK',
      message: 'Expected the task bursty_workload that the policy was trained for, got static_workload',
    });
  });
});
