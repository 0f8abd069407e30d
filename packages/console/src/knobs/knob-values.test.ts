import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Knob, RangeKnob } from '../api/action-schema.ts';
import { firstFrame } from '../state/frame.ts';
import { isMasked, maskedValues, nearestStop, sliderStops, startValues } from './knob-values.ts';

const range = (minimum: number, maximum: number, integer: boolean): RangeKnob => ({
  kind: 'range',
  name: 'x',
  description: '',
  minimum,
  maximum,
  integer,
  optional: false,
});

describe('a slider', () => {
  for (const [name, knob, doubling] of [
    ['of doubling values', range(1, 512, true), true],
    ['of a share', range(0.1, 1, false), false],
    ['of a few integers', range(0, 8, true), false],
    ['of many integers', range(0, 100_000, true), false],
  ] as const) {
    it(`${name} reaches both ends, rises at every stop and stays inside the bounds`, () => {
      const stops = sliderStops(knob, doubling);
      assert.equal(stops[0], knob.minimum);
      assert.equal(stops.at(-1), knob.maximum);
      for (let i = 1; i < stops.length; i++) assert.ok(stops[i] > stops[i - 1]);
      if (knob.integer) for (const stop of stops) assert.ok(Number.isInteger(stop));
      assert.ok(stops.length <= 600);
    });
  }

  it('of a share stops at round values that JSON keeps short', () => {
    const stops = sliderStops(range(0.1, 1, false), false);
    assert.ok(stops.includes(0.3) && stops.includes(0.85));
  });

  it('of a batch cap stops at the caps people use', () => {
    const stops = sliderStops(range(1, 512, true), true);
    for (const cap of [1, 2, 4, 8, 16, 32, 64, 128, 256, 384, 512]) assert.ok(stops.includes(cap), `${cap}`);
  });

  it('shows a value between its stops at the nearest one', () => {
    assert.equal(nearestStop([1, 2, 4, 8], 5), 2);
    assert.equal(nearestStop([1, 2, 4, 8], 700), 3);
  });
});

describe('the start values', () => {
  it('are the task’s defaults, then the schema’s, then the first of each kind', () => {
    const knobs: Knob[] = [
      { ...range(1, 512, true), name: 'batch_cap', initial: 1 },
      { ...range(0, 9, true), name: 'with_default', initial: 4 },
      { ...range(3, 9, true), name: 'unknown' },
      { kind: 'choice', name: 'tier', description: '', optional: false, values: ['a', 'b'] },
      { kind: 'switch', name: 'on', description: '', optional: false },
      { kind: 'number', name: 'count', description: '', optional: false, integer: true },
      { kind: 'text', name: 'note', description: '', optional: true },
    ];
    assert.deepEqual(startValues(knobs, { batch_cap: 32, other: 1 }), {
      batch_cap: 32,
      with_default: 4,
      unknown: 3,
      tier: 'a',
      on: false,
      count: 0,
      note: undefined,
    });
    assert.equal(startValues(knobs, undefined).batch_cap, 1);
  });
});

const values = [0, 1, 2];
const tier = { kind: 'choice', name: 'quant_tier', description: '', optional: false, values } as const;
const task = (active: string[]) =>
  ({ id: 1, name: '', difficulty: 'easy', description: '', active_actions: active }) as const;
const frame = (action_mask: unknown) =>
  firstFrame({ observation: {}, reward: null, done: false, metadata: { action_mask } });

it('a knob is masked where the task does not list it as active', () => {
  assert.equal(isMasked(tier, task(['batch_size']), undefined), true);
  assert.equal(isMasked(tier, task(['quant_tier']), undefined), false);
  assert.equal(isMasked(tier, undefined, undefined), false);
});

it('a knob or some of its values are masked where the window says so', () => {
  assert.equal(isMasked(tier, undefined, frame({ quant_tier: false })), true);
  assert.deepEqual(maskedValues(tier, values, frame({ quant_tier: [0, 1] })), [2]);
  assert.deepEqual(maskedValues(tier, values, frame('what')), []);
});
