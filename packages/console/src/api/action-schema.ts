import type { Fields } from './wire.ts';

/** One field of an action, as a person can set it. */
export type Knob = RangeKnob | ChoiceKnob | SwitchKnob;

interface KnobBase {
  readonly name: string;
  readonly description: string;
  readonly initial?: unknown;
}
export interface RangeKnob extends KnobBase {
  readonly kind: 'range';
  readonly minimum: number;
  readonly maximum: number;
  readonly integer: boolean;
}
export interface ChoiceKnob extends KnobBase {
  readonly kind: 'choice';
  readonly values: readonly string[];
}
export interface SwitchKnob extends KnobBase {
  readonly kind: 'switch';
}

/** The knobs that an action schema offers, in its order. Fields that are no bounded number, choice or boolean are left out. */
export function knobsOf(schema: Fields): Knob[] {
  const properties = (schema.properties ?? {}) as Record<string, Fields>;
  return Object.entries(properties).flatMap(([name, property]) => knobOf(name, property) ?? []);
}

function knobOf(name: string, property: Fields): Knob | undefined {
  const base = { name, description: String(property.description ?? ''), initial: property.default };
  if (property.type === 'boolean') return { ...base, kind: 'switch' };
  if (Array.isArray(property.enum)) return { ...base, kind: 'choice', values: property.enum.map(String) };
  const { minimum, maximum } = property;
  if (typeof minimum !== 'number' || typeof maximum !== 'number') return undefined;
  return { ...base, kind: 'range', minimum, maximum, integer: property.type === 'integer' };
}

/** The `description` of each property of a schema. */
export function descriptionsOf(schema: Fields): Record<string, string> {
  const properties = (schema.properties ?? {}) as Record<string, Fields>;
  return Object.fromEntries(
    Object.entries(properties).flatMap(([name, { description }]) =>
      typeof description === 'string' ? [[name, description]] : [],
    ),
  );
}
