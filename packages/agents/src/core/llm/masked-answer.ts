import type { JsonSchema } from './answer-format.ts';
import type { PromptedTask } from './llm-prompt.ts';

/** The knobs that a task masks where it names its default action, with the values that they stay at. */
export function maskedValues(task: PromptedTask): Readonly<Record<string, unknown>> {
  const defaults = (task.default_action ?? {}) as Readonly<Record<string, unknown>>;
  const masked = (task.masked_actions ?? []) as readonly string[];
  const named = masked.filter((knob) => Object.hasOwn(defaults, knob));
  return Object.fromEntries(named.map((knob) => [knob, defaults[knob]]));
}

/** A schema of answers that leaves masked knobs one value each. */
export function narrowedSchema(schema: JsonSchema, masked: Readonly<Record<string, unknown>>): JsonSchema {
  const properties = { ...(schema.properties as Readonly<Record<string, JsonSchema>>) };
  for (const [knob, value] of Object.entries(masked)) {
    const description = properties[knob]?.description;
    properties[knob] = { ...(description !== undefined && { description }), enum: [value] };
  }
  return { ...schema, properties };
}

/** What is wrong with an answer that turns masked knobs; nothing where it leaves them. */
export function maskComplaints(action: object, masked: Readonly<Record<string, unknown>>): string[] {
  const set = action as Readonly<Record<string, unknown>>;
  return Object.entries(masked)
    .filter(([knob, value]) => set[knob] !== value)
    .map(
      ([knob, value]) =>
        `${knob}: Expected ${JSON.stringify(value)}, at which the task holds it, got ${JSON.stringify(set[knob])}`,
    );
}
