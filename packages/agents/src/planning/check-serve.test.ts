import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  inferencegym,
  llmserve,
  SEED_SPLITS,
  type ServeAction,
  type ServeTask,
} from '@servegym/environments';
import { episodeReturn, keptReturn } from '../core/checks/task-check.ts';
import { planSchedule } from './check-gym.ts';
import { bestInt4Constant } from './check-serve.ts';
import { checkedGym, checkedServe } from './checked-tasks.ts';

const { static_workload } = llmserve.tasks.shipped;
const brief: ServeTask = {
  ...static_workload,
  windows: 8,
  phases: static_workload.phases.map((phase) => ({ ...phase, windows: [8, 8] })),
};
const good: ServeAction = { ...brief.defaultAction, batch_cap: 24 };

describe('bestInt4Constant', () => {
  it('tunes the other knobs for INT4 on training traffic', () => {
    const found = bestInt4Constant(brief, good, 1)!;
    const earned = (action: ServeAction) =>
      keptReturn(checkedServe(brief), [SEED_SPLITS.train.first], action);
    assert.equal(found.quantization_tier, 'INT4');
    assert.ok(earned(found) > earned({ ...good, quantization_tier: 'INT4' }));
  });

  it('finds nothing where the precision is masked', () => {
    assert.equal(bestInt4Constant({ ...brief, maskedKnobs: ['quantization_tier'] }, good, 1), undefined);
  });
});

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
