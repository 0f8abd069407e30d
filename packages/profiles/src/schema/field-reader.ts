import { BATCH_DEPTHS, type BatchDepth, type FactorPoint, isBatchDepths } from '@servegym/simulator';
import { ProfileError } from './profile-error.ts';

const LEAST_FACTOR = 0.001;
const MOST_FACTOR = 1000;

/**
 * Reads the fields of one JSON object and refuses what is missing, of another type, out of range or, at `end`, unknown.
 * Every error names the field by its path.
 */
export class FieldReader {
  readonly #source: string;
  readonly #path: string;
  readonly #object: Record<string, unknown>;
  readonly #known = new Set<string>();

  constructor(source: string, path: string, value: unknown) {
    this.#source = source;
    this.#path = path;
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw new ProfileError('PROFILE_FIELD', source, path, 'an object', describe(value));
    }
    this.#object = value as Record<string, unknown>;
  }

  get keys(): readonly string[] {
    return Object.keys(this.#object);
  }

  object(key: string): FieldReader {
    return new FieldReader(this.#source, this.#pathOf(key), this.#take(key));
  }

  /** `null` when the field is `null`. */
  nullable<T>(key: string, read: (reader: FieldReader) => T): T | null {
    return this.#take(key) === null ? null : read(this.object(key));
  }

  /** `undefined` when the field is absent. */
  optional<T>(key: string, read: (reader: FieldReader) => T): T | undefined {
    return this.#take(key) === undefined ? undefined : read(this.object(key));
  }

  text(key: string, pattern: RegExp = /\S/, expected = 'a text that is not empty'): string {
    const value = this.#take(key);
    if (typeof value !== 'string' || !pattern.test(value)) throw this.#wrong(key, expected, value);
    return value;
  }

  /** As `choice`, or `undefined` when the field is absent. */
  optionalChoice<T extends string>(key: string, choices: readonly T[]): T | undefined {
    return this.#take(key) === undefined ? undefined : this.choice(key, choices);
  }

  choice<T extends string>(key: string, choices: readonly T[]): T {
    const value = this.#take(key);
    const choice = choices.find((candidate) => candidate === value);
    if (choice === undefined) throw this.#wrong(key, `one of ${choices.join(', ')}`, value);
    return choice;
  }

  /** A finite number from `low` to `high`. */
  number(key: string, low: number, high: number): number {
    const value = this.#take(key);
    if (typeof value !== 'number' || !(value >= low && value <= high)) {
      throw this.#wrong(key, `a number from ${low} to ${high}`, value);
    }
    return value;
  }

  /** As `number`, or `undefined` when the field is absent. */
  optionalNumber(key: string, low: number, high: number): number | undefined {
    return this.#take(key) === undefined ? undefined : this.number(key, low, high);
  }

  /** As `integer`, or `undefined` when the field is absent. */
  optionalInteger(key: string, low: number, high: number): number | undefined {
    return this.#take(key) === undefined ? undefined : this.integer(key, low, high);
  }

  /** `undefined` when the field is absent. */
  optionalBoolean(key: string): boolean | undefined {
    const value = this.#take(key);
    if (value === undefined || typeof value === 'boolean') return value;
    throw this.#wrong(key, 'true or false', value);
  }

  integer(key: string, low: number, high: number): number {
    const value = this.#take(key);
    if (!Number.isInteger(value) || !((value as number) >= low && (value as number) <= high)) {
      throw this.#wrong(key, `a whole number from ${low} to ${high}`, value);
    }
    return value as number;
  }

  /** A power of two up to `high`. */
  powerOfTwo(key: string, high: number): number {
    const value = this.integer(key, 1, high);
    if (!Number.isInteger(Math.log2(value))) throw this.#wrong(key, `a power of two up to ${high}`, value);
    return value;
  }

  /** Two numbers from 0, the second not below the first. */
  range(key: string): [number, number] {
    const value = this.#take(key);
    if (Array.isArray(value) && value.length === 2) {
      const [low, high] = value as unknown[];
      if (
        typeof low === 'number' &&
        typeof high === 'number' &&
        low >= 0 &&
        high >= low &&
        Number.isFinite(high)
      ) {
        return [low, high];
      }
    }
    throw this.#wrong(key, 'two numbers [low, high], 0 <= low <= high', value);
  }

  /** Points of a factor by ascending whole counts, at least one; `undefined` when the field is absent. */
  optionalFactors(key: string): FactorPoint[] | undefined {
    const value = this.#take(key);
    if (value === undefined) return undefined;
    const isPoint = (point: unknown, i: number, points: unknown[]) => {
      if (!Array.isArray(point) || point.length !== 2) return false;
      const [count, factor] = point as unknown[];
      const least = i === 0 ? 1 : (points[i - 1] as FactorPoint)[0] + 1;
      return Number.isInteger(count) && (count as number) >= least && isFactor(factor);
    };
    if (Array.isArray(value) && value.length > 0 && value.every(isPoint)) return value as FactorPoint[];
    throw this.#wrong(
      key,
      `points [count, factor] by ascending whole counts from 1, factors from ${LEAST_FACTOR} to ${MOST_FACTOR}`,
      value,
    );
  }

  /** Draft tokens by batch size; `undefined` when the field is absent. */
  optionalBatchDepths(key: string): BatchDepth[] | undefined {
    const value = this.#take(key);
    if (value === undefined || isBatchDepths(value)) return value;
    throw this.#wrong(key, BATCH_DEPTHS, value);
  }

  /** Probabilities that never rise, at least one. */
  survival(key: string): number[] {
    const value = this.#take(key);
    const isSurvival =
      Array.isArray(value) &&
      value.length > 0 &&
      value.every((p, i) => typeof p === 'number' && p >= 0 && p <= (i === 0 ? 1 : (value[i - 1] as number)));
    if (!isSurvival) throw this.#wrong(key, 'probabilities in [0, 1] that never rise', value);
    return value as number[];
  }

  /** Texts, one for each of `count` things; `undefined` when the field is absent. */
  optionalTexts(key: string, count: number): string[] | undefined {
    const value = this.#take(key);
    if (value === undefined) return undefined;
    if (Array.isArray(value) && value.length === count && value.every((text) => typeof text === 'string'))
      return value;
    throw this.#wrong(key, `${count} texts`, value);
  }

  /** @throws ProfileError when the object has a field that nothing has read. */
  end(): void {
    for (const key of this.keys) {
      if (this.#known.has(key)) continue;
      const expected = `absent: the known fields are ${[...this.#known].join(', ')}`;
      throw this.#wrong(key, expected, this.#object[key]);
    }
  }

  #take(key: string): unknown {
    this.#known.add(key);
    return Object.hasOwn(this.#object, key) ? this.#object[key] : undefined;
  }

  #pathOf(key: string): string {
    return this.#path === '' ? key : `${this.#path}.${key}`;
  }

  #wrong(key: string, expected: string, value: unknown): ProfileError {
    return new ProfileError('PROFILE_FIELD', this.#source, this.#pathOf(key), expected, describe(value));
  }
}

function isFactor(value: unknown): boolean {
  return typeof value === 'number' && value >= LEAST_FACTOR && value <= MOST_FACTOR;
}

function describe(value: unknown): string {
  if (value === undefined) return 'nothing';
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}
