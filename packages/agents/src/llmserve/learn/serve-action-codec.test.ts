import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { activeKnobs, DEFAULT_ACTION, SERVE_KNOBS, serveActionSchema } from '@servegym/environments';
import fc from 'fast-check';
import { ServeActionCodec } from './serve-action-codec.ts';

const codec = new ServeActionCodec({ defaultAction: DEFAULT_ACTION });
const binsOf = ({ headSizes }: ServeActionCodec) => fc.tuple(...headSizes.map((size) => fc.nat(size - 1)));

describe('the bins of a serving action', () => {
  it('decode to valid actions, and those encode to the same bins', () => {
    fc.assert(
      fc.property(binsOf(codec), (row) => {
        const action = codec.decode(row);
        serveActionSchema.parse(action);
        assert.deepEqual(codec.encode(action), row);
      }),
    );
  });

  it('have the default action exactly', () => {
    assert.deepEqual(codec.decode(codec.encode(DEFAULT_ACTION)), DEFAULT_ACTION);
  });

  it('take the nearest of an action between them', () => {
    const action = { ...DEFAULT_ACTION, batch_cap: 440, kv_budget_fraction: 0.44, speculation_depth: 7 };
    const decoded = codec.decode(codec.encode(action));
    assert.equal(decoded.batch_cap, 384);
    assert.equal(decoded.kv_budget_fraction, 0.4);
    assert.equal(decoded.speculation_depth, 6);
    assert.equal(codec.decode(codec.encode({ ...action, batch_cap: 1 })).batch_cap, 4);
  });

  it('have a head for each knob that a task leaves free, and the default of the others', () => {
    const masks = fc.subarray([...SERVE_KNOBS], { minLength: 1, maxLength: SERVE_KNOBS.length - 1 });
    // A default that is no bin shows that a masked knob goes through none.
    const defaultAction = { ...DEFAULT_ACTION, batch_cap: 100, kv_budget_fraction: 0.33 };
    fc.assert(
      fc.property(
        masks.chain((maskedKnobs) => {
          const masked = new ServeActionCodec({ defaultAction, maskedKnobs });
          return fc.record({ maskedKnobs: fc.constant(maskedKnobs), row: binsOf(masked) });
        }),
        ({ maskedKnobs, row }) => {
          const masked = new ServeActionCodec({ defaultAction, maskedKnobs });
          const action = masked.decode(row);
          for (const knob of maskedKnobs) assert.equal(action[knob], defaultAction[knob]);
          assert.deepEqual(masked.encode(action), row);
          assert.deepEqual(Object.keys(masked.bins), activeKnobs({ maskedKnobs }));
          assert.deepEqual(
            masked.headSizes,
            Object.values(masked.bins).map((bins) => bins.length),
          );
        },
      ),
    );
  });
});
