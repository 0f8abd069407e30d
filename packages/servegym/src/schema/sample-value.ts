/** A JSON Schema document of a server, of which nothing is known yet. */
export type ForeignSchema = Readonly<Record<string, unknown>>;

/** Deeper than schemas of actions go; recursive ones end here. */
const MAX_DEPTH = 16;

/**
 * A plain value that a JSON Schema asks for: defaults where there are any, required properties only, numbers at the
 * lower end of their range. `undefined` where the schema is beyond this, as with a `pattern`. Check it before use.
 */
export function sampleValue(schema: ForeignSchema): unknown {
  return sample(schema, schema, 0);
}

function sample(schema: unknown, root: ForeignSchema, depth: number): unknown {
  if (depth > MAX_DEPTH || !isSchema(schema)) return undefined;
  if ('const' in schema) return schema.const;
  if ('default' in schema) return schema.default;
  for (const values of [schema.enum, schema.examples]) {
    if (Array.isArray(values) && values.length > 0) return values[0];
  }
  if (typeof schema.$ref === 'string') return sample(resolve(schema.$ref, root), root, depth + 1);
  const parts = [schema.anyOf, schema.oneOf, schema.allOf].find(Array.isArray);
  if (parts) {
    const values = parts.map((part) => sample(part, root, depth + 1));
    if (!schema.allOf) return values.find((value) => value !== undefined && value !== null) ?? values[0];
    return values.every(isSchema) ? Object.assign({}, ...values) : values[0];
  }
  const type = Array.isArray(schema.type) ? schema.type.find((name) => name !== 'null') : schema.type;
  return sampleOfType(type, schema, root, depth);
}

function sampleOfType(type: unknown, schema: ForeignSchema, root: ForeignSchema, depth: number): unknown {
  switch (type) {
    case 'object':
      return sampleObject(schema, root, depth);
    case 'array': {
      const { items, prefixItems, minItems } = schema;
      const count = Math.min(numberOr(minItems, 0), 1000);
      return Array.from({ length: count }, (_, index) =>
        sample(Array.isArray(prefixItems) ? (prefixItems[index] ?? items) : items, root, depth + 1),
      );
    }
    case 'string':
      return schema.pattern === undefined && schema.format === undefined
        ? 'a'.repeat(Math.min(numberOr(schema.minLength, 1), 100_000))
        : undefined;
    case 'integer':
      return sampleNumber(schema, true);
    case 'number':
      return sampleNumber(schema, false);
    case 'boolean':
      return false;
    case 'null':
      return null;
    default:
      return undefined;
  }
}

function sampleObject(schema: ForeignSchema, root: ForeignSchema, depth: number): unknown {
  const { properties, required } = schema;
  const value: Record<string, unknown> = {};
  for (const name of Array.isArray(required) ? required : []) {
    const part = sample(isSchema(properties) ? properties[name] : undefined, root, depth + 1);
    if (part === undefined) return undefined;
    value[name] = part;
  }
  return value;
}

/** 0 where that is in the range, else its end that is nearer to 0. */
function sampleNumber(schema: ForeignSchema, isWhole: boolean): number {
  const { exclusiveMinimum: above, exclusiveMaximum: below } = schema;
  const gap = (bound: number) => (isWhole ? 1 : Number.EPSILON * Math.max(1, Math.abs(bound)));
  const least = Math.max(
    numberOr(schema.minimum, Number.NEGATIVE_INFINITY),
    typeof above === 'number' ? above + gap(above) : Number.NEGATIVE_INFINITY,
  );
  const most = Math.min(
    numberOr(schema.maximum, Number.POSITIVE_INFINITY),
    typeof below === 'number' ? below - gap(below) : Number.POSITIVE_INFINITY,
  );
  const value = Math.min(Math.max(0, least), most);
  // Towards the inside of the range, which begins above 0 or ends below it.
  return isWhole ? Math.sign(value) * Math.ceil(Math.abs(value)) : value;
}

function resolve(reference: string, root: ForeignSchema): unknown {
  if (!reference.startsWith('#')) return undefined;
  let target: unknown = root;
  for (const part of reference.slice(1).split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    target = isSchema(target) && Object.hasOwn(target, key) ? target[key] : undefined;
  }
  return target;
}

function numberOr(value: unknown, otherwise: number): number {
  return typeof value === 'number' ? value : otherwise;
}

function isSchema(value: unknown): value is ForeignSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
