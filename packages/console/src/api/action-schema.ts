import type { Fields } from './wire.ts';

interface KnobBase {
  readonly name: string;
  readonly description: string;
  readonly initial?: unknown;
  /** It may be left out. */
  readonly optional: boolean;
}
interface Bounds {
  readonly minimum: number;
  readonly maximum: number;
}
/** One field of an action or of the reset's options, as a person can set it. */
export type Knob = KnobBase &
  (
    | ({ readonly kind: 'range'; readonly integer: boolean } & Bounds)
    // Without bounds, or with bounds too far apart for a slider.
    | ({ readonly kind: 'number'; readonly integer: boolean } & Partial<Bounds>)
    | { readonly kind: 'choice'; readonly values: readonly unknown[] }
    | { readonly kind: 'switch' }
    // What is none of the others is `json`: a person types it.
    | { readonly kind: 'text' | 'json' }
  );
export type RangeKnob = Extract<Knob, { kind: 'range' }>;

/** A slider across more than this many integers would skip most of them. */
const WIDEST_RANGE = 1e6;

/** The knobs that an object schema offers, in its order. `metadata` is left out: clients add it, nobody sets it. */
export function knobsOf(schema: Fields): Knob[] {
  const properties = (schema.properties ?? {}) as Record<string, Fields>;
  return Object.entries(properties)
    .filter(([name]) => name !== 'metadata')
    .map(([name, property]) => knobOf(name, property, schema));
}

function knobOf(name: string, property: Fields, root: Fields): Knob {
  const schema = plainSchema(property, root);
  const base = {
    name,
    description: String(property.description ?? schema.description ?? ''),
    initial: property.default ?? schema.default,
    optional: !((root.required ?? []) as string[]).includes(name),
  };
  const values = choicesOf(schema);
  if (values) return { ...base, kind: 'choice', values };
  switch (schema.type) {
    case 'boolean':
      return { ...base, kind: 'switch' };
    case 'string':
      return { ...base, kind: 'text' };
    case 'integer':
    case 'number':
      return numberKnob(base, schema);
    default:
      return { ...base, kind: alternatives(schema).some(({ type }) => type === 'string') ? 'text' : 'json' };
  }
}

function numberKnob(base: KnobBase, schema: Fields): Knob {
  const integer = schema.type === 'integer';
  const minimum = number(schema.minimum ?? schema.exclusiveMinimum);
  const maximum = number(schema.maximum ?? schema.exclusiveMaximum);
  if (minimum === undefined || maximum === undefined || maximum - minimum > WIDEST_RANGE)
    return { ...base, kind: 'number', integer, minimum, maximum };
  return { ...base, kind: 'range', minimum, maximum, integer };
}

/** Follows a reference, and takes the one alternative that is not null. */
function plainSchema(schema: Fields, root: Fields): Fields {
  if (typeof schema.$ref === 'string') {
    const target = schema.$ref
      .split('/')
      .slice(1)
      .reduce<unknown>((place, key) => (place as Fields | undefined)?.[key], root);
    return plainSchema((target ?? {}) as Fields, root);
  }
  const parts = alternatives(schema).filter(({ type }) => type !== 'null');
  if (parts.length !== 1) return schema;
  // Title, description and default of the whole hold for the one alternative that is left of it.
  const { anyOf, oneOf, ...said } = schema;
  return { ...said, ...plainSchema(parts[0], root) };
}

function choicesOf(schema: Fields): readonly unknown[] | undefined {
  if (Array.isArray(schema.enum)) return schema.enum;
  const parts = alternatives(schema).filter(({ type }) => type !== 'null');
  return parts.length > 0 && parts.every((part) => 'const' in part)
    ? parts.map((part) => part.const)
    : undefined;
}

function alternatives(schema: Fields): Fields[] {
  return ((schema.anyOf ?? schema.oneOf ?? []) as Fields[]).filter(Boolean);
}

/** Bounds at the ends of what JSON keeps exact say only that the number is an integer. */
function number(value: unknown): number | undefined {
  return typeof value === 'number' && Math.abs(value) < Number.MAX_SAFE_INTEGER ? value : undefined;
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

/** Features of a server beside playing, from its OpenAPI document. */
export type ServerAbilities = ReturnType<typeof readAbilities>;

export const NO_ABILITIES: ServerAbilities = {
  episodes: false,
  grader: true,
  resetOptions: [],
};

/** Options of a reset that the page has a place of its own for, or that are no business of a person. */
const OWN_PLACE = new Set(['seed', 'task_id', 'session_id', 'episode_id', 'split', 'index']);

export function readAbilities(description: Fields) {
  const paths = (description.paths ?? {}) as Record<string, Fields | undefined>;
  return {
    /** Episodes can be taken out as files and opened again. */
    episodes: paths['/episodes'] !== undefined,
    grader: paths['/grader'] !== undefined,
    /** Options of the reset beside the task and the seed. */
    resetOptions: knobsOf(resetSchema(paths['/reset'])).filter(({ name }) => !OWN_PLACE.has(name)),
  };
}

/** The schema of the body of `POST /reset`, which may stand beside null. */
function resetSchema(path: Fields | undefined): Fields {
  const route = path?.post as { requestBody?: { content?: Record<string, { schema?: Fields }> } } | undefined;
  const schema = route?.requestBody?.content?.['application/json']?.schema ?? {};
  const parts = (schema.anyOf ?? []) as Fields[];
  return parts.find(({ properties }) => properties !== undefined) ?? schema;
}
