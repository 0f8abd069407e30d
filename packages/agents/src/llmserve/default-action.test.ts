import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SERVE_TASKS, TASK_IDS } from '@servegym/environments';
import { defaultActionOf } from './default-action.ts';

describe('defaultActionOf', () => {
  it('is the configuration that a reset of the task applies', () => {
    for (const taskId of TASK_IDS) assert.equal(defaultActionOf(taskId), SERVE_TASKS[taskId].defaultAction);
  });

  it('names the tasks when asked for another', () => {
    for (const taskId of ['static', 3, 'toString']) {
      assert.throws(
        () => defaultActionOf(taskId),
        /Expected a task named one of static_workload, bursty_workload/,
      );
    }
  });
});
