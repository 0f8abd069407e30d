import { type GymAction, type GymTask, type Knob, SPEC_LENGTHS } from '@servegym/environments';
import type { KnobValues } from '../../core/checks/knob-tally.ts';

const KNOBS: readonly KnobValues<GymAction>[] = [
  {
    knob: 'batch_size',
    bins: [
      { name: '1-8', values: [2, 4, 8] },
      { name: '9-64', values: [16, 24, 32, 48, 64] },
      { name: '65-512', values: [96, 128, 192, 256, 384, 512] },
    ],
  },
  {
    knob: 'kv_budget',
    bins: [
      { name: '0.1-0.4', values: [0.1, 0.15, 0.2, 0.3, 0.4] },
      { name: '0.4-0.7', values: [0.5, 0.6, 0.7] },
      { name: '0.7-1', values: [0.8, 0.9, 1] },
    ],
  },
  { knob: 'spec_length', bins: SPEC_LENGTHS.map((depth) => ({ name: `${depth}`, values: [depth] })) },
  {
    knob: 'prefill_disagg',
    bins: [
      { name: 'mixed', values: [false] },
      { name: 'split', values: [true] },
    ],
  },
  {
    knob: 'quant_tier',
    bins: [
      { name: 'FP16', values: [0] },
      { name: 'INT8', values: [1] },
      { name: 'INT4', values: [2] },
    ],
  },
];

/** The values of the knobs that act in a task. The thirds of `batch_size` are on a logarithmic scale. */
export function gymKnobs({ activeKnobs }: GymTask): readonly KnobValues<GymAction>[] {
  return KNOBS.filter(({ knob }) => activeKnobs.includes(knob));
}

/** All values of a knob that are tried. */
export function valuesOf({ bins }: KnobValues<GymAction>): readonly GymAction[Knob][] {
  return bins.flatMap(({ values }) => values);
}

/** The action with one knob at another value. */
export function withGymKnob(action: GymAction, knob: Knob, value: GymAction[Knob]): GymAction {
  return { ...action, [knob]: value };
}
