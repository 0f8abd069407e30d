import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { llmserve, SEED_SPLITS, type ServeAction, type ServeTask } from '@servegym/environments';
import { keptReturn } from '../core/checks/checked-task.ts';
import { bestInt4Constant } from './check-serve.ts';
import { checkedServe } from './checked-tasks.ts';

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
