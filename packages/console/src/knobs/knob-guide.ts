import type { Knob } from '../api/action-schema.ts';
import { amount, percent } from '../components/format.ts';
import { ENVIRONMENTS } from '../state/choices.ts';

/** Name of a knob of an LLM server on the page, with its benefit and its cost. */
interface KnobGuide {
  readonly label: string;
  readonly buys: string;
  readonly costs: string;
  /** Spreads the slider by doubling instead of evenly. */
  readonly doubling?: boolean;
  readonly format?: string;
  readonly unit?: string;
  /** Names of values that are numbers on the wire. */
  readonly names?: Readonly<Record<string, string>>;
}

/** By the field of the action, of all environments that the page knows. */
export const KNOB_GUIDE: Readonly<Record<string, KnobGuide | undefined>> = Object.assign(
  {},
  ...Object.values(ENVIRONMENTS).map((known) => known?.knobs),
);

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
