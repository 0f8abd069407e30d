import { EnvironmentError } from '@servegym/openenv/definition';

/** Fields of a task that decide which actions it takes. */
export interface KnobMask<Action extends object> {
  readonly defaultAction: Action;
  /**
   * Knobs that stay at the default: an action that sets one to anything else is refused. Absent where all are free;
   * never empty, and never all.
   */
  readonly maskedKnobs?: readonly (keyof Action & string)[];
}

/** The action with the masked knobs at the task's defaults. */
export function holdMaskedKnobs<Action extends object>(
  { defaultAction, maskedKnobs }: KnobMask<Action>,
  action: Action,
): Action {
  if (maskedKnobs === undefined) return action;
  const held = maskedKnobs.map((knob) => [knob, defaultAction[knob]]);
  return { ...action, ...(Object.fromEntries(held) as Partial<Action>) };
}

/**
 * The action to play: a default that has come as a float32 is the default.
 * @throws EnvironmentError `MASKED_KNOB` when an action sets a masked knob to something else than the task's default
 */
export function requireMaskedKnobsHeld<Action extends object>(
  task: KnobMask<Action> & { readonly id: string },
  action: Action,
): Action {
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

function isDefault(value: unknown, standard: unknown): boolean {
  return value === standard || (typeof standard === 'number' && value === Math.fround(standard));
}
