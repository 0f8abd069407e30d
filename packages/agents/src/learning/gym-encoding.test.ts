import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { inferencegym } from '@servegym/environments';
import fc from 'fast-check';
import { GYM_LEARNER } from './learners.ts';

describe('the bins of an action of inferencegym', () => {
  for (const taskId of inferencegym.tasks.shippedIds) {
    const codec = GYM_LEARNER.codec(inferencegym.tasks.shipped[taskId]);
    const bins = fc.tuple(...codec.headSizes.map((size) => fc.nat(size - 1)));

    it(`decode to valid actions, and those encode to the same bins (task ${taskId})`, () => {
      fc.assert(
        fc.property(bins, (row) => {
          const action = codec.decode(row);
          assert.deepEqual(inferencegym.actionSchema.parse(action), action);
          assert.deepEqual(codec.encode(action), row);
        }),
      );
    });

    it(`have the default action exactly (task ${taskId})`, () => {
      assert.deepEqual(codec.decode(codec.encode(inferencegym.defaultAction)), inferencegym.defaultAction);
    });
  }

  it('have a head for each knob that is active, and leave the others at their defaults', () => {
    assert.deepEqual(
      inferencegym.tasks.shippedIds.map(
        (id) => GYM_LEARNER.codec(inferencegym.tasks.shipped[id]).headSizes.length,
      ),
      [2, 3, 5],
    );
    const { spec_length, prefill_disagg, quant_tier } = GYM_LEARNER.codec(
      inferencegym.tasks.shipped[1],
    ).decode([0, 0]);
    assert.deepEqual([spec_length, prefill_disagg, quant_tier], [0, false, 0]);
  });

  it('take the nearest of an action between them', () => {
    const codec = GYM_LEARNER.codec(inferencegym.tasks.shipped[1]);
    const decoded = codec.decode(
      codec.encode({ ...inferencegym.defaultAction, batch_size: 440, kv_budget: 0.44 }),
    );
    assert.deepEqual([decoded.batch_size, decoded.kv_budget], [384, 0.4]);
  });
});
