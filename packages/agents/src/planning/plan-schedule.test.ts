import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { inferencegym } from '@servegym/environments';
import { episodeReturn } from '../core/checks/checked-task.ts';
import { checkedGym } from './checked-tasks.ts';
import { planSchedule } from './plan-schedule.ts';

describe('planSchedule', () => {
  const task = inferencegym.tasks.shipped[2];
  const start = { ...inferencegym.defaultAction, batch_size: 128, kv_budget: 0.8 };

  it('earns what it says, more than the configuration it starts from, and turns active knobs only', async () => {
    const world = await inferencegym.shippedWorld();
    const schedule = planSchedule(world, task, 5, { start, sweeps: 1 });
    assert.equal(schedule.actions.length, inferencegym.episodeSteps);
    assert.equal(
      episodeReturn(checkedGym(world, task), 5, (step) => schedule.actions[step]),
      schedule.return,
    );
    assert.ok(schedule.return > episodeReturn(checkedGym(world, task), 5, () => start));
    for (const { prefill_disagg, quant_tier } of schedule.actions) {
      assert.deepEqual([prefill_disagg, quant_tier], [start.prefill_disagg, start.quant_tier]);
    }
  });

  it('keeps the configuration when it may not look for another', async () => {
    const world = await inferencegym.shippedWorld();
    const { actions, return: earned } = planSchedule(world, task, 5, { start, sweeps: 0 });
    assert.deepEqual(new Set(actions), new Set([start]));
    assert.equal(
      earned,
      episodeReturn(checkedGym(world, task), 5, () => start),
    );
  });
});
