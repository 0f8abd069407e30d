import { isJsonObject, type JsonObject } from '../protocol/read-json.ts';

/** A JSON Schema document of a server, of which nothing is known yet. */
export type ForeignSchema = JsonObject;

/** Deeper than schemas of actions go; recursive ones end here. */
const MAX_DEPTH = 16;
/** A number without an upper bound is drawn from this range above its lower one. */
const UNBOUNDED_RANGE = 10;

interface Sampling {
  readonly root: ForeignSchema;
  readonly random: (() => number) | undefined;
}

/**
 * A value that a JSON Schema asks for, `undefined` where the schema is beyond this, as with a `pattern`. Check it before use.
 *
 * Without `random` a plain one: defaults where there are any, required properties only, numbers at the end of their range
 * that is nearer to 0. With `random`, which gives numbers in [0, 1), any one: choices, numbers in their range, optional
 * properties as often as not, `metadata` never.
 */
export function sampleValue(schema: ForeignSchema, random?: () => number): unknown {
  return sample(schema, { root: schema, random }, 0);
}

function sample(schema: unknown, sampling: Sampling, depth: number): unknown {
  if (depth > MAX_DEPTH || !isJsonObject(schema)) return undefined;
  const { root, random } = sampling;
  if ('const' in schema) return schema.const;
  if ('default' in schema && !random) return schema.default;
  for (const values of [schema.enum, schema.examples]) {
    if (Array.isArray(values) && values.length > 0) return choose(values, random);
  }
  if (typeof schema.$ref === 'string') return sample(resolve(schema.$ref, root), sampling, depth + 1);
  const parts = [schema.anyOf, schema.oneOf, schema.allOf].find(Array.isArray);
  if (parts) {
    if (random && !schema.allOf) return sample(choose(parts, random), sampling, depth + 1);
    const values = parts.map((part) => sample(part, sampling, depth + 1));
    if (!schema.allOf) return values.find((value) => value !== undefined && value !== null) ?? values[0];
    return values.every(isJsonObject) ? Object.assign({}, ...values) : values[0];
  }
  const type = Array.isArray(schema.type) ? schema.type.find((name) => name !== 'null') : schema.type;
  return sampleOfType(type, schema, sampling, depth);
}

function sampleOfType(type: unknown, schema: ForeignSchema, sampling: Sampling, depth: number): unknown {
  switch (type) {
    case 'object':
      return sampleObject(schema, sampling, depth);
    case 'array': {
      const { items, prefixItems, minItems } = schema;
      const count = Math.min(numberOr(minItems, 0), 1000);
      return Array.from({ length: count }, (_, index) =>
        sample(Array.isArray(prefixItems) ? (prefixItems[index] ?? items) : items, sampling, depth + 1),
      );
    }
    case 'string':
      return schema.pattern === undefined && schema.format === undefined
        ? 'a'.repeat(Math.min(numberOr(schema.minLength, 1), 100_000))
        : undefined;
    case 'integer':
    case 'number':
      return sampleNumber(schema, type === 'integer', sampling.random);
    case 'boolean':
      return choose([false, true], sampling.random);
    case 'null':
      return null;
    default:
      return undefined;
  }
}

function sampleObject(schema: ForeignSchema, sampling: Sampling, depth: number): unknown {
  const { random } = sampling;
  const properties = isJsonObject(schema.properties) ? schema.properties : {};
  const required: readonly string[] = Array.isArray(schema.required) ? schema.required : [];
  const optional = Object.keys(properties).filter(
    (name) => name !== 'metadata' && !required.includes(name) && random && random() < 0.5,
  );
  const value: Record<string, unknown> = {};
  for (const name of [...required, ...optional]) {
    const part = sample(properties[name], sampling, depth + 1);
    if (part === undefined && required.includes(name)) return undefined;
    if (part !== undefined) value[name] = part;
  }
  return value;
}

/** Without `random`, 0 where that is in the range, else its end that is nearer to 0. */
function sampleNumber(schema: ForeignSchema, isWhole: boolean, random: (() => number) | undefined): number {
  const above = numberOr(schema.exclusiveMinimum, Number.NEGATIVE_INFINITY);
  const below = numberOr(schema.exclusiveMaximum, Number.POSITIVE_INFINITY);
  const gap = (bound: number) =>
    isWhole || !Number.isFinite(bound) ? 1 : Number.EPSILON * Math.max(1, Math.abs(bound));
  const least = Math.max(numberOr(schema.minimum, above), above + gap(above));
  const most = Math.min(numberOr(schema.maximum, below), below - gap(below));
  if (!random) {
    const value = Math.min(Math.max(0, least), most);
    // Towards the inside of the range, which begins above 0 or ends below it.
    return isWhole ? Math.sign(value) * Math.ceil(Math.abs(value)) : value;
  }
  const low = Number.isFinite(least) ? least : Math.min(0, most - UNBOUNDED_RANGE);
  const high = Number.isFinite(most) ? most : low + UNBOUNDED_RANGE;
  if (!isWhole) return low + random() * (high - low);
  const first = Math.ceil(low);
  return first + Math.floor(random() * (Math.floor(high) - first + 1));
}

function choose<T>(values: readonly T[], random: (() => number) | undefined): T {
  return values[random ? Math.floor(random() * values.length) : 0];
}

function resolve(reference: string, root: ForeignSchema): unknown {
  if (!reference.startsWith('#')) return undefined;
  let target: unknown = root;
  for (const part of reference.slice(1).split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    target = isJsonObject(target) && Object.hasOwn(target, key) ? target[key] : undefined;
  }
  return target;
}

function numberOr(value: unknown, otherwise: number): number {
  return typeof value === 'number' ? value : otherwise;
}

/** Numbers in [0, 1): multiples of the golden ratio are spread evenly. */
export function evenlySpread(): () => number {
  let draws = 0;
  return () => (draws++ * 0.618_033_988_75) % 1;
}
