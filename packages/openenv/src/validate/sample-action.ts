import type { JsonSchema } from '../protocol/json-schema.ts';

/** Numbers without a bound are drawn from 0 to this. */
const UNBOUNDED = 10;
const MOST_NESTED = 8;

/** Evenly distributed numbers in [0, 1), the same for the same seed (mulberry32). */
export function numbersFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A value that a JSON Schema takes. Optional properties are left out as often as not, `metadata` always. */
export function sampleValue(
  schema: JsonSchema,
  random: () => number,
  root: JsonSchema = schema,
  depth = 0,
): unknown {
  if (depth > MOST_NESTED) return null;
  const resolved = resolve(schema, root);
  if (resolved.const !== undefined) return resolved.const;
  if (resolved.enum) return pick(resolved.enum, random);
  const branches = resolved.oneOf ?? resolved.anyOf;
  if (branches) return sampleValue(pick(branches, random), random, root, depth + 1);
  const type = Array.isArray(resolved.type) ? pick(resolved.type, random) : resolved.type;
  switch (type) {
    case 'object':
      return sampleObject(resolved, random, root, depth);
    case 'integer': {
      const low = Math.ceil(lowest(resolved, 1));
      return low + Math.floor(random() * (Math.floor(highest(resolved, low, 1)) - low + 1));
    }
    case 'number': {
      const low = lowest(resolved, 1e-6);
      return low + random() * (highest(resolved, low, 1e-6) - low);
    }
    case 'boolean':
      return random() < 0.5;
    case 'string':
      return 'x'.repeat(Math.max(Number(resolved.minLength ?? 0), 1));
    case 'array': {
      const length = Number(resolved.minItems ?? 0);
      return Array.from({ length }, () => sampleValue(resolved.items ?? {}, random, root, depth + 1));
    }
    default:
      return null;
  }
}

function sampleObject(schema: JsonSchema, random: () => number, root: JsonSchema, depth: number) {
  const required = new Set(schema.required);
  const properties = Object.entries(schema.properties ?? {}).filter(
    ([name]) => required.has(name) || (name !== 'metadata' && random() < 0.5),
  );
  return Object.fromEntries(
    properties.map(([name, property]) => [name, sampleValue(property, random, root, depth + 1)]),
  );
}

function lowest({ minimum, exclusiveMinimum, maximum }: JsonSchema, gap: number): number {
  if (minimum !== undefined) return minimum;
  if (typeof exclusiveMinimum === 'number') return exclusiveMinimum + gap;
  return Math.min(0, maximum ?? 0);
}

function highest({ maximum, exclusiveMaximum }: JsonSchema, low: number, gap: number): number {
  if (maximum !== undefined) return maximum;
  if (typeof exclusiveMaximum === 'number') return exclusiveMaximum - gap;
  return low + UNBOUNDED;
}

function resolve(schema: JsonSchema, root: JsonSchema): JsonSchema {
  const name = /^#\/\$defs\/(.+)$/.exec(String(schema.$ref ?? ''))?.[1];
  return name === undefined ? schema : (root.$defs?.[name] ?? {});
}

function pick<T>(values: readonly T[], random: () => number): T {
  return values[Math.floor(random() * values.length)]!;
}
