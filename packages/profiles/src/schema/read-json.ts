import { z } from 'zod';

/** Codes of what is wrong with a profile, or with that which one is to be made from. */
export type ProfileErrorCode =
  /** Not JSON. */
  | 'PROFILE_SYNTAX'
  /** A field that is missing, of the wrong type, or out of its range. */
  | 'PROFILE_FIELD'
  /** No profile of this name in the catalog. */
  | 'PROFILE_UNKNOWN'
  /** A file that cannot be read as measurements. */
  | 'CALIBRATION_FILE'
  /** No measurement is left after the selection, or too few to fit. */
  | 'CALIBRATION_ROWS'
  /** A GPU or model that is not known, or a description of one that is wrong. */
  | 'CALIBRATION_HARDWARE'
  /** Kernel tables that lack what a model on a GPU needs. */
  | 'CALIBRATION_TABLES';

/** A profile that cannot be used, or measurements that none can be made of. */
export class ProfileError extends Error {
  override readonly name = 'ProfileError';
  readonly isInputError = true;
  readonly code: ProfileErrorCode;
  /** Path of the field, for instance `weights.FP16.law.baseUs`; empty where no field is to blame. */
  readonly field: string;

  /**
   * @param source File or name, as the caller gave it, with the line where there is one; empty for none.
   * @param of Whose field it is, for instance ` of load 1`.
   */
  constructor(code: ProfileErrorCode, source: string, expected: string, got: string, field = '', of = '') {
    const place = source === '' ? '' : `${source}: `;
    super(`${place}expected ${field === '' ? '' : `\`${field}\`${of} to be `}${expected}, got ${got}`);
    this.code = code;
    this.field = field;
  }
}

/** Parsed JSON. @throws {ProfileError} with this code, saying what was expected. */
export function parseJson(text: string, source: string, code: ProfileErrorCode, expected: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ProfileError(code, source, expected, (error as SyntaxError).message);
  }
}

/**
 * A value that a schema of the helpers below accepts.
 *
 * @param place Path of the value in its file, whose it is (` of load 1`), and the code of the error, by default
 *   `PROFILE_FIELD`.
 * @throws {ProfileError} naming the first field that is wrong.
 */
export function checked<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  source: string,
  { at = [], of = '', code = 'PROFILE_FIELD' }: Place = {},
): z.infer<Schema> {
  const read = schema.safeParse(value);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  const path = issue.code === 'unrecognized_keys' ? [...issue.path, issue.keys[0]] : issue.path;
  const got = path.reduce<unknown>((object, key) => (object as Record<PropertyKey, unknown>)?.[key], value);
  throw new ProfileError(code, source, issue.message, shown(got), [...at, ...path].join('.'), of);
}

interface Place {
  readonly at?: readonly string[];
  readonly of?: string;
  readonly code?: ProfileErrorCode;
}

function shown(value: unknown): string {
  if (value === undefined) return 'nothing';
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

/** An object with these fields and no others. */
export function fields<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.strictObject(shape, {
    error: ({ code }) =>
      code === 'unrecognized_keys'
        ? `absent: the known fields are ${Object.keys(shape).join(', ')}`
        : 'an object',
  });
}

export function numberFrom(low: number, high: number) {
  const error = `a number from ${low} to ${high}`;
  return z.number({ error }).min(low, { error }).max(high, { error });
}

export function numberAboveZero(what = 'a number above 0') {
  return z.number({ error: what }).gt(0, { error: what });
}

export function wholeNumber(low: number, high = Number.MAX_SAFE_INTEGER) {
  const error = `a whole number from ${low}${high === Number.MAX_SAFE_INTEGER ? '' : ` to ${high}`}`;
  return z.int({ error }).min(low, { error }).max(high, { error });
}

export function choice<const Choices extends readonly string[]>(choices: Choices) {
  return z.enum(choices, { error: `one of ${choices.join(', ')}` });
}

export function textLike(pattern = /\S/, error = 'a text that is not empty') {
  return z.string({ error }).regex(pattern, { error });
}

export function trueOrFalse() {
  return z.boolean({ error: 'true or false' });
}
