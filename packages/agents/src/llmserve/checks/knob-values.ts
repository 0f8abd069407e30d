import { activeKnobs, type ServeAction, type ServeTask } from '@servegym/environments';
import type { KnobValues } from '../../core/checks/knob-tally.ts';

const KNOBS: readonly KnobValues<ServeAction>[] = [
  {
    knob: 'batch_cap',
    bins: [
      { name: '1-8', values: [2, 4, 8] },
      { name: '9-64', values: [16, 32, 48, 64] },
      { name: '65-512', values: [96, 128, 192, 256, 384, 512] },
    ],
  },
  {
    knob: 'kv_budget_fraction',
    bins: [
      { name: '0.1-0.4', values: [0.1, 0.15, 0.2, 0.3, 0.4] },
      { name: '0.4-0.7', values: [0.5, 0.6, 0.7] },
      { name: '0.7-1', values: [0.8, 0.9, 1] },
    ],
  },
  {
    knob: 'speculation_depth',
    bins: [
      { name: '0-2', values: [0, 1, 2] },
      { name: '3-5', values: [3, 4, 5] },
      { name: '6-8', values: [6, 7, 8] },
    ],
  },
  {
    knob: 'quantization_tier',
    bins: [
      { name: 'FP16', values: ['FP16'] },
      { name: 'INT8', values: ['INT8'] },
      { name: 'INT4', values: ['INT4'] },
    ],
  },
  {
    knob: 'prefill_decode_split',
    bins: [
      { name: 'mixed', values: [false] },
      { name: 'split', values: [true] },
    ],
  },
  {
    knob: 'priority_routing',
    bins: [
      { name: 'fcfs', values: [false] },
      { name: 'priority', values: [true] },
    ],
  },
];

/** The values of the knobs that a task leaves free. The thirds of `batch_cap` are on a logarithmic scale. */
export function serveKnobs(task: ServeTask): readonly KnobValues<ServeAction>[] {
  const active = activeKnobs(task);
  return KNOBS.filter(({ knob }) => active.includes(knob));
}
