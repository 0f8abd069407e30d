import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { laneScale, laneValue } from './lanes.ts';

const cap = {
  knob: {
    kind: 'range',
    name: 'cap',
    description: '',
    minimum: 1,
    maximum: 512,
    integer: true,
    optional: false,
  },
  doubling: true,
} as const;
const tier = {
  knob: { kind: 'choice', name: 'tier', description: '', values: ['a', 'b', 'c'], optional: false },
  doubling: false,
} as const;
const split = {
  knob: { kind: 'switch', name: 'split', description: '', optional: false },
  doubling: false,
} as const;

describe('a lane of the timeline', () => {
  it('keeps every value of its knob inside its own strip', () => {
    for (const [lane, values] of [
      [cap, [1, 32, 512]],
      [tier, ['a', 'b', 'c']],
      [split, [false, true]],
    ] as const) {
      for (const index of [0, 3, 6]) {
        const [low, high] = laneScale(lane, index, 7);
        for (const value of values) {
          const height = (laneValue(lane, value)! - low) / (high - low);
          assert.ok(
            height > (6 - index) / 7 && height < (7 - index) / 7,
            `${lane.knob.name} ${value} at ${height}`,
          );
        }
      }
    }
  });

  it('shows nothing for a value it does not know', () => {
    assert.equal(laneValue(tier, 'z'), null);
    assert.equal(laneValue(cap, undefined), null);
    assert.equal(laneValue(split, 1), null);
  });
});
