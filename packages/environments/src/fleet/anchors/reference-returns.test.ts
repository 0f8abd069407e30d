import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { drawFleetRequests } from '../draw-requests.ts';
import { FLEET_TASKS } from '../fleet-task.ts';
import { FLEET_TASK_IDS } from '../schema.ts';
import { RateRule } from './controllers.ts';
import { controlledReturn, fleetReturns, hpaInFlight } from './fleet-anchors.ts';

describe('the recorded returns of fleet', () => {
  for (const taskId of FLEET_TASK_IDS) {
    const task = FLEET_TASKS[taskId];
    const reference = fleetReturns.reference(taskId)!;

    it(`data: are those of this task on this simulator; if not, \`maintenance/rebuild-references.ts\` makes them anew (${taskId})`, () => {
      assert.equal(reference.fingerprint, fleetReturns.fingerprint(task));
    });

    it(`are what the autoscaler and the rule earn (${taskId})`, () => {
      const [seed, recorded] = Object.entries(reference.seeds)[0]!;
      const requests = drawFleetRequests(task, Number(seed));
      for (const [controller, earned] of [
        [hpaInFlight(), recorded.default],
        [new RateRule(reference.rule), recorded.rule],
      ] as const) {
        const played = controlledReturn(task, Number(seed), requests, controller);
        assert.ok(Math.abs(played - earned) < 1e-6, `${controller.name} ${played} ${earned}`);
      }
    });

    it(`data: have a planner that is never below the rule (${taskId})`, () => {
      for (const { rule, clairvoyant } of Object.values(reference.seeds)) assert.ok(clairvoyant >= rule);
    });
  }
});
