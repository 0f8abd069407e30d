import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SERVE_TASKS, TASK_IDS } from '@servegym/environments';
import { knownTask } from './known-task.ts';

describe('knownTask', () => {
  it('is the task of an id', () => {
    for (const taskId of TASK_IDS) assert.equal(knownTask(taskId), SERVE_TASKS[taskId]);
  });

  it('names the tasks when asked for another', () => {
    for (const taskId of ['static', 3, 'toString']) {
      assert.throws(() => knownTask(taskId), /Expected a task named one of static_workload, bursty_workload/);
    }
  });
});
