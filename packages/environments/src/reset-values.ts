import { EnvironmentError, type ResetOptions } from '@servegym/openenv/definition';

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
