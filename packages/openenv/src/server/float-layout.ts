import type { JsonSchema } from '../protocol/bodies.ts';

/** One number of a row: where it stands in the object, and how it is read and written. */
interface FloatField {
  readonly name: string;
  readonly path: readonly string[];
  /** The values that indexes stand for, when the field is an enumeration. */
  readonly values: readonly unknown[] | null;
  readonly isBoolean: boolean;
}

/**
 * Layout of an object of numbers, booleans and enumerations in a row of float32: its properties in the order of the
 * schema, nested ones as `outer.inner`, fixed-length lists as `list.0`, booleans as 0 or 1, enumerations as the index of
 * their value. Free text has no place in a row.
 */
export class FloatLayout {
  readonly #fields: readonly FloatField[];

  private constructor(fields: readonly FloatField[]) {
    this.#fields = fields;
  }

  /** Layout of actions, which are read in full. @throws TypeError naming a field that no number can hold. */
  static whole(schema: JsonSchema): FloatLayout {
    return new FloatLayout(fieldsOf(schema, [], false));
  }

  /** Layout of observations, whose texts are left out. @throws TypeError as above, but for texts */
  static withoutTexts(schema: JsonSchema): FloatLayout {
    return new FloatLayout(fieldsOf(schema, [], true));
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
      row[offset + index] = values ? indexOf(values, value) : toNumber(value);
    }
  }

  /** Builds the object of a row, still to be validated. An index outside an enumeration stays a number. */
  read(row: Float32Array, offset: number): Record<string, unknown> {
    const object: Record<string, unknown> = {};
    for (const [index, { path, values, isBoolean }] of this.#fields.entries()) {
      const number = row[offset + index];
      let value: unknown = number;
      if (values) value = values[number] ?? number;
      else if (isBoolean) value = number === 1 ? true : number === 0 ? false : number;
      place(object, path, value);
    }
    return object;
  }
}

function fieldsOf(schema: JsonSchema, path: readonly string[], leavesTexts: boolean): FloatField[] {
  const name = path.join('.');
  if (schema.enum) return [{ name, path, values: schema.enum, isBoolean: false }];
  if (schema.const !== undefined) return [{ name, path, values: [schema.const], isBoolean: false }];
  switch (schema.type) {
    case 'integer':
    case 'number':
      return [{ name, path, values: null, isBoolean: false }];
    case 'boolean':
      return [{ name, path, values: null, isBoolean: true }];
    case 'string':
      if (leavesTexts) return [];
      break;
    case 'object':
      return Object.entries(schema.properties ?? {}).flatMap(([key, property]) =>
        fieldsOf(property, [...path, key], leavesTexts),
      );
    case 'array': {
      const { items, minItems, maxItems } = schema as {
        items?: JsonSchema;
        minItems?: number;
        maxItems?: number;
      };
      if (items && minItems !== undefined && minItems === maxItems) {
        return Array.from({ length: minItems }, (_, index) =>
          fieldsOf(items, [...path, String(index)], leavesTexts),
        ).flat();
      }
    }
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

function toNumber(value: unknown): number {
  return typeof value === 'number' || typeof value === 'boolean' ? Number(value) : Number.NaN;
}
