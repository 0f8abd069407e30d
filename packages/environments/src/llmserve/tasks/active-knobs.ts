import type { KnobMask } from '../../masked-knobs.ts';
import { SERVE_KNOBS, type ServeAction, type ServeKnob } from '../schema.ts';

/** The knobs that a task leaves free, in the order of the action. */
export function activeKnobs({
  maskedKnobs,
}: Pick<KnobMask<ServeAction>, 'maskedKnobs'>): readonly ServeKnob[] {
  return maskedKnobs === undefined ? SERVE_KNOBS : SERVE_KNOBS.filter((knob) => !maskedKnobs.includes(knob));
}

/** Values of a knob that a task leaves: all of them, or, where it masks the knob, its default. */
export function unmaskedValues<Knob extends ServeKnob>(
  { defaultAction, maskedKnobs }: KnobMask<ServeAction>,
  knob: Knob,
  values: readonly ServeAction[Knob][],
): readonly ServeAction[Knob][] {
  return maskedKnobs?.includes(knob) ? [defaultAction[knob]] : values;
}
