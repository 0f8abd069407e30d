import type { Knob, RangeKnob } from '../api/action-schema.ts';
import { type Fields, fields, type Task } from '../api/wire.ts';
import { amount, percent } from '../components/format.ts';
import { ENVIRONMENTS } from '../state/choices.ts';
import type { Frame } from '../state/frame.ts';

/** First values of the knobs: the task's default action, else those of the schema. */
export function startValues(knobs: readonly Knob[], defaultAction: unknown): Fields {
  const defaults = fields(defaultAction);
  return Object.fromEntries(knobs.map((knob) => [knob.name, defaults[knob.name] ?? startValue(knob)]));
}

function startValue(knob: Knob): unknown {
  if (knob.initial !== undefined) return knob.initial;
  switch (knob.kind) {
    case 'range':
      return knob.minimum;
    case 'number':
      return knob.minimum ?? (knob.optional ? undefined : 0);
    case 'text':
      return knob.optional ? undefined : '';
    case 'json':
      return undefined;
    case 'choice':
      return knob.values[0];
    case 'switch':
      return false;
  }
}

/**
 * The values that a slider stops at. Even knobs stop at each integer, or at 1/90 or finer of a real range; doubling
 * knobs stop four times an octave, which reaches both 6 and 384 in a hand's width.
 */
export function sliderStops(knob: RangeKnob, doubling: boolean): number[] {
  if (!doubling) return evenStops(knob);
  const stops = new Set([knob.minimum, knob.maximum]);
  for (let octave = 1; octave <= knob.maximum; octave *= 2) {
    for (const quarter of [1, 1.25, 1.5, 1.75]) {
      const stop = octave * quarter;
      if (Number.isInteger(stop) && stop > knob.minimum && stop < knob.maximum) stops.add(stop);
    }
  }
  return [...stops].sort((a, b) => a - b);
}

function evenStops({ minimum, maximum, integer }: RangeKnob): number[] {
  const step = integer
    ? Math.max(1, Math.round((maximum - minimum) / 500))
    : 10 ** Math.floor(Math.log10((maximum - minimum) / 50));
  const digits = Math.max(0, -Math.floor(Math.log10(step)));
  const count = Math.round((maximum - minimum) / step);
  return Array.from({ length: count + 1 }, (_, i) =>
    Number(Math.min(maximum, minimum + i * step).toFixed(digits)),
  );
}

/** The index of the stop nearest to `value`. */
export function nearestStop(stops: readonly number[], value: number): number {
  let best = 0;
  for (let i = 1; i < stops.length; i++) {
    if (Math.abs(stops[i] - value) < Math.abs(stops[best] - value)) best = i;
  }
  return best;
}

/**
 * A knob does nothing now: the task lists its `active_actions` without it, or the window's `action_mask` has
 * `false` for it.
 */
export function isMasked({ name }: Knob, task: Task | undefined, frame: Frame | undefined): boolean {
  const active = task?.active_actions;
  if (Array.isArray(active) && !active.includes(name)) return true;
  return maskOf(frame)[name] === false;
}

/** The values of a choice that the window's `action_mask` shuts out: it lists those that are allowed. */
export function maskedValues(
  { name }: Knob,
  values: readonly unknown[],
  frame: Frame | undefined,
): unknown[] {
  const allowed = maskOf(frame)[name];
  return Array.isArray(allowed) ? values.filter((value) => !allowed.includes(value)) : [];
}

function maskOf(frame: Frame | undefined): Fields {
  return fields(frame?.metadata.action_mask);
}

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
