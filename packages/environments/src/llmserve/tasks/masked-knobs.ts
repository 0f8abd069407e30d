import { EnvironmentError } from '@servegym/openenv/definition';
import { SERVE_KNOBS, type ServeAction, type ServeKnob } from '../schema.ts';
import type { ServeTask } from './serve-task.ts';

/** Fields of a task that decide which actions it takes. */
export type KnobMask = Pick<ServeTask, 'defaultAction' | 'maskedKnobs'>;

/** The knobs that a task leaves free, in the order of the action. */
export function activeKnobs({ maskedKnobs }: Pick<KnobMask, 'maskedKnobs'>): readonly ServeKnob[] {
  return maskedKnobs === undefined ? SERVE_KNOBS : SERVE_KNOBS.filter((knob) => !maskedKnobs.includes(knob));
}

/** Values of a knob that a task leaves: all of them, or, where it masks the knob, its default. */
export function unmaskedValues<Knob extends ServeKnob>(
  { defaultAction, maskedKnobs }: KnobMask,
  knob: Knob,
  values: readonly ServeAction[Knob][],
): readonly ServeAction[Knob][] {
  return maskedKnobs?.includes(knob) ? [defaultAction[knob]] : values;
}

/** The action with the masked knobs at the task's defaults. */
export function holdMaskedKnobs({ defaultAction, maskedKnobs }: KnobMask, action: ServeAction): ServeAction {
  if (maskedKnobs === undefined) return action;
  const held = maskedKnobs.map((knob) => [knob, defaultAction[knob]]);
  return { ...action, ...(Object.fromEntries(held) as Partial<ServeAction>) };
}

/**
 * The action to play: a default that has come as a float32 is the default.
 * @throws EnvironmentError `MASKED_KNOB` when an action sets a masked knob to something else than the task's default
 */
export function requireMaskedKnobsHeld(
  task: KnobMask & Pick<ServeTask, 'id'>,
  action: ServeAction,
): ServeAction {
  const { id, defaultAction, maskedKnobs } = task;
  if (maskedKnobs === undefined) return action;
  const turned = maskedKnobs.filter((knob) => !isDefault(action[knob], defaultAction[knob]));
  if (turned.length === 0) return holdMaskedKnobs(task, action);
  const held = turned.map((knob) => `\`${knob}\` to stay at ${JSON.stringify(defaultAction[knob])}`);
  const got = turned.map((knob) => JSON.stringify(action[knob]));
  throw new EnvironmentError(
    'MASKED_KNOB',
    `Expected ${held.join(' and ')}, got ${got.join(' and ')}: \`${id}\` masks ${turned.length === 1 ? 'this knob' : 'these knobs'}. Send the default; the episode goes on`,
  );
}

function isDefault(value: ServeAction[ServeKnob], standard: ServeAction[ServeKnob]): boolean {
  return value === standard || (typeof standard === 'number' && value === Math.fround(standard));
}
