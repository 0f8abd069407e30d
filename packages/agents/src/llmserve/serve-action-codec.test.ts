import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DEFAULT_ACTION, serveActionSchema } from '@servegym/environments';
import fc from 'fast-check';
import { decodeServeAction, encodeServeAction, SERVE_HEAD_SIZES } from './serve-action-codec.ts';

const bins = fc.tuple(...SERVE_HEAD_SIZES.map((size) => fc.nat(size - 1)));

describe('the bins of a serving action', () => {
  it('decode to valid actions, and those encode to the same bins', () => {
    fc.assert(
      fc.property(bins, (row) => {
        const action = decodeServeAction(row);
        serveActionSchema.parse(action);
        assert.deepEqual(encodeServeAction(action), row);
      }),
    );
  });

  it('have the default action exactly', () => {
    assert.deepEqual(decodeServeAction(encodeServeAction(DEFAULT_ACTION)), DEFAULT_ACTION);
  });

  it('take the nearest of an action between them', () => {
    const action = { ...DEFAULT_ACTION, batch_cap: 440, kv_budget_fraction: 0.44, speculation_depth: 7 };
    const decoded = decodeServeAction(encodeServeAction(action));
    assert.equal(decoded.batch_cap, 384);
    assert.equal(decoded.kv_budget_fraction, 0.4);
    assert.equal(decoded.speculation_depth, 6);
    assert.equal(decodeServeAction(encodeServeAction({ ...action, batch_cap: 1 })).batch_cap, 4);
  });
});
