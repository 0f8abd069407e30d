import type { Knob } from '../api/action-schema.ts';
import { amount, percent } from '../components/format.ts';
import { KNOB_GUIDE } from './knob-guide.ts';

/** A knob's value as the page says it, without its unit. */
export function valueText(knob: Knob, value: unknown): string {
  const guide = KNOB_GUIDE[knob.name];
  if (value === undefined || value === null) return '–';
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  if (knob.kind === 'choice') return guide?.names?.[String(value)] ?? String(value);
  if (typeof value !== 'number') return typeof value === 'string' ? value : JSON.stringify(value);
  if (guide?.format === 'percent') return percent(value);
  return Number.isInteger(value) ? String(value) : amount(value);
}

/** A knob's value with its unit. */
export function knobText(knob: Knob, value: unknown): string {
  const unit = KNOB_GUIDE[knob.name]?.unit;
  const text = valueText(knob, value);
  return unit ? `${text} ${unit}` : text;
}
