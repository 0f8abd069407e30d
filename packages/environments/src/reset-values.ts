import { EnvironmentError, type ResetOptions } from '@servegym/openenv/definition';
import { z } from 'zod';

/**
 * The seed of the traffic; 0 when it is absent, which happens in process only: servers draw one.
 * @throws EnvironmentError `INVALID_SEED`
 */
export function readSeed({ seed = 0 }: ResetOptions): number {
  if (!Number.isSafeInteger(seed) || seed < 0) {
    throw new EnvironmentError(
      'INVALID_SEED',
      `Expected \`seed\` to be a whole number from 0 to 2^53 - 1, got \`${shown(seed)}\``,
    );
  }
  return seed;
}

/** The error of an option whose value is none of the names that there are. */
export function unknownName(
  option: string,
  got: unknown,
  names: readonly string[],
  code: string,
): EnvironmentError {
  return new EnvironmentError(
    code,
    `Expected \`${option}\` to be ${nameList(names, 'nothing')}, got \`${shown(got)}\``,
  );
}

/** A name to look up; that of nothing when it is no text. */
export function named(option: unknown): string {
  return typeof option === 'string' ? option : '';
}

/** A value of any kind in a message. */
export function shown(value: unknown): string {
  const text = typeof value === 'object' || typeof value === 'function' ? typeof value : String(value);
  return text.slice(0, 100);
}

/** Names in a message. */
export function nameList(names: readonly string[], otherwise: string): string {
  return names.length === 0 ? otherwise : `one of ${names.join(', ')}`;
}

/** Least and most value of a number. */
export interface Range {
  readonly least: number;
  readonly most: number;
}

/** Arrivals may be this many times slower or faster. */
export const RATE_SCALE: Range = { least: 0.01, most: 20 };

/** The reset option `rate_scale`. */
export const rateScaleOption = z
  .number()
  .min(RATE_SCALE.least)
  .max(RATE_SCALE.most)
  .optional()
  .meta({ description: 'Arrivals come this many times as fast', default: 1 });

/** @throws EnvironmentError `INVALID_` and the name of the option */
export function readWithin(option: string, value: unknown, { least, most }: Range): number {
  if (typeof value === 'number' && value >= least && value <= most) return value;
  throw new EnvironmentError(
    `INVALID_${option.toUpperCase()}`,
    `Expected \`${option}\` to be a number from ${least} to ${most}, got \`${shown(value)}\``,
  );
}

/** @throws EnvironmentError `UNKNOWN_PROFILE` */
export function readProfile(option: string, value: unknown, names: readonly string[]): string {
  if (names.includes(named(value))) return named(value);
  throw unknownName(option, value, names, 'UNKNOWN_PROFILE');
}

/**
 * A task under the shift that an option names.
 * @param apply shifts the task; throws a RangeError where that is impossible
 * @throws EnvironmentError `UNKNOWN_SHIFT` or `SHIFT_IMPOSSIBLE`
 */
export function underShift<Shift extends string, Task>(
  shift: unknown,
  shifts: readonly Shift[],
  apply: (shift: Shift) => Task,
): Task {
  if (!(shifts as readonly unknown[]).includes(shift)) {
    throw unknownName('shift', shift, shifts, 'UNKNOWN_SHIFT');
  }
  try {
    return apply(shift as Shift);
  } catch (error) {
    if (error instanceof RangeError) throw new EnvironmentError('SHIFT_IMPOSSIBLE', error.message);
    throw error;
  }
}
