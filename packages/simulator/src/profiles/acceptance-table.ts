import type { EngineProfile } from './engine-profile.ts';

/** A profile was asked for an acceptance table it does not have. */
export class AcceptanceTableError extends Error {
  override readonly name = 'AcceptanceTableError';
  readonly isInputError = true;
  readonly code = 'PROFILE_ACCEPTANCE';
}

/**
 * P(at least k draft tokens accepted), k = 1, 2, ..., for one kind of text.
 * @throws AcceptanceTableError naming the tables there are.
 */
export function acceptanceTable(profile: EngineProfile, kind: string): readonly number[] {
  const survival = profile.speculation?.survival[kind];
  if (survival !== undefined) return survival;
  const known = Object.keys(profile.speculation?.survival ?? {});
  throw new AcceptanceTableError(
    known.length === 0
      ? `Profile \`${profile.name}\` has no draft model: the speculation depth must be 0`
      : `Expected an acceptance table of profile \`${profile.name}\` (${known.join(', ')}), got \`${kind}\``,
  );
}
