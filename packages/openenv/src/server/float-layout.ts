import type { JsonSchema } from '../protocol/bodies.ts';

/** One number of a row: where it stands in the object, and how it is read and written. */
interface FloatField {
  readonly name: string;
  readonly path: readonly string[];
  /** The values that indexes stand for, when the field is an enumeration or a boolean. */
  readonly values?: readonly unknown[];
}

/**
 * Layout of an object of numbers, booleans and enumerations in a row of float32: its properties in the order of the
 * schema, nested ones as `outer.inner`, fixed-length lists as `list.0`, booleans as 0 or 1, enumerations as the index of
 * their value. Free text has no place in a row.
 */
export class FloatLayout {
  readonly #fields: readonly FloatField[];

  /**
   * @param leavesTexts Leaves texts out, as of observations. Actions are read in full.
   * @throws TypeError naming a field that no number can hold
   */
  constructor(schema: JsonSchema, leavesTexts: boolean) {
    this.#fields = fieldsOf(schema, [], leavesTexts);
  }

  /** Names of the numbers of a row. */
  get names(): string[] {
    return this.#fields.map((field) => field.name);
  }

  /** Numbers a row. */
  get width(): number {
    return this.#fields.length;
  }

  /** Writes an object into a row. A value that the schema does not foresee becomes NaN. */
  write(object: object, row: Float32Array, offset: number): void {
    for (const [index, { path, values }] of this.#fields.entries()) {
      let value: unknown = object;
      for (const key of path) value = (value as Record<string, unknown> | undefined)?.[key];
      row[offset + index] = values ? indexOf(values, value) : typeof value === 'number' ? value : Number.NaN;
    }
  }

  /** Builds the object of a row, still to be validated. An index outside an enumeration stays a number. */
  read(row: Float32Array, offset: number): Record<string, unknown> {
    const object: Record<string, unknown> = {};
    for (const [index, { path, values }] of this.#fields.entries()) {
      const number = row[offset + index];
      place(object, path, values?.[number] ?? number);
    }
    return object;
  }
}

function fieldsOf(schema: JsonSchema, path: readonly string[], leavesTexts: boolean): FloatField[] {
  const name = path.join('.');
  if (schema.enum) return [{ name, path, values: schema.enum }];
  if (schema.const !== undefined) return [{ name, path, values: [schema.const] }];
  const { type, items, minItems, maxItems } = schema;
  if (type === 'integer' || type === 'number') return [{ name, path }];
  if (type === 'boolean') return [{ name, path, values: [false, true] }];
  if (type === 'string' && leavesTexts) return [];
  if (type === 'object') {
    return Object.entries(schema.properties ?? {}).flatMap(([key, property]) =>
      fieldsOf(property, [...path, key], leavesTexts),
    );
  }
  if (type === 'array' && items && typeof minItems === 'number' && minItems === maxItems) {
    return Array.from({ length: minItems }, (_, index) =>
      fieldsOf(items, [...path, String(index)], leavesTexts),
    ).flat();
  }
  throw new TypeError(`The field '${name}' cannot be a float32; use the format 'json'.`);
}

function place(object: Record<string, unknown>, path: readonly string[], value: unknown): void {
  let target = object;
  for (let depth = 0; depth < path.length - 1; depth++) {
    const key = path[depth];
    // A key that is a number, as `0`, belongs to a list.
    target[key] ??= /^\d+$/.test(path[depth + 1]) ? [] : {};
    target = target[key] as Record<string, unknown>;
  }
  target[path.at(-1)!] = value;
}

function indexOf(values: readonly unknown[], value: unknown): number {
  const index = values.indexOf(value);
  return index < 0 ? Number.NaN : index;
}
