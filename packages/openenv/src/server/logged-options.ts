import { isDeepStrictEqual } from 'node:util';
import { EnvironmentError, type ResetOptions } from '../definition.ts';
import type { GivenOptions } from '../input/reset-options-reader.ts';

/** The session that a log may be of. */
export interface SessionOfLog {
  /** Options of its reset. */
  readonly reset: ResetOptions;
  /** Whether the request names it; otherwise it is the caller's latest. */
  readonly isNamed: boolean;
}

/**
 * The options of the reset that a log was played after. What the request does not give is as in the session, where its
 * task is the same; the caller's latest session is passed over also where the request gives another seed.
 * @throws EnvironmentError `SEED_REQUIRED` when neither tells the seed and the schema has no default
 */
export function loggedOptions({ options, given }: GivenOptions, session?: SessionOfLog): ResetOptions {
  const differs = (option: string) =>
    given.has(option) && !isDeepStrictEqual(options[option], session?.reset[option]);
  const isOfSession = session && !differs('task_id') && (session.isNamed || !differs('seed'));
  const told = Object.fromEntries(Object.entries(options).filter(([option]) => given.has(option)));
  const { episode_id, seed, ...chosen } = isOfSession
    ? { ...options, ...session.reset, ...told }
    : { ...options };
  if (typeof seed === 'number') return { ...chosen, seed };
  throw new EnvironmentError(
    'SEED_REQUIRED',
    'Expected the `seed` that the log was played on, or the `session_id` of its episode, got neither: actions are graded on the traffic that they met.',
  );
}
