import { ProfileError } from '../schema/read-json.ts';

/** Something that different people call differently. */
export interface Named {
  readonly id: string;
  readonly name: string;
  readonly aliases: readonly string[];
}

/** Whether this is one of its names, whatever the case. */
export function isCalled({ id, name, aliases }: Named, label: string): boolean {
  return [id, name, ...aliases].some((alias) => alias.toLowerCase() === label.toLowerCase());
}

/** The one that is called so. @throws {ProfileError} listing those there are. */
export function findNamed<T extends Named>(all: readonly T[], label: string, kind: string): T {
  const found = all.find((candidate) => isCalled(candidate, label));
  if (found !== undefined) return found;
  const known = all.map(({ id }) => id).join(', ');
  throw new ProfileError('CALIBRATION_HARDWARE', '', `a known ${kind} (${known})`, `"${label}"`);
}

/** Name in the form of an id, as in the names of profiles. */
export function idOf(name: string): string {
  return name
    .toLowerCase()
    .replace(/[^a-z0-9.]+/g, '-')
    .replace(/^[.-]+|[.-]+$/g, '')
    .replace(/[.-]{2,}/g, '-');
}
