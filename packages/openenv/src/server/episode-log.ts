import { isDeepStrictEqual } from 'node:util';
import { EnvironmentError, type ResetOptions } from '../definition.ts';
import type { GivenOptions } from '../input/reset-options-reader.ts';
import { InvalidInputError } from '../input/validation-issues.ts';
import { isJsonObject, type JsonObject } from '../json/read-json.ts';

/** Options and actions of an `episode_log`. Observations, rewards and scores in it are dropped unread. */
export interface LoggedEpisode {
  /** Candidate reset options, still to be validated. */
  readonly reset: JsonObject;
  /** Candidate actions, still to be validated, with the place where each stands in the request's body. */
  readonly actions: readonly { readonly action: unknown; readonly loc: readonly (string | number)[] }[];
}

/** Under which of these keys a log that is an object has its steps; the first that is there counts. */
export const LOG_LISTS = ['steps', 'episode_log', 'log', 'actions'] as const;

/**
 * Reads the forms of log that clients send: a list, or an object with `steps`, `actions`, `log` or `episode_log`. Each
 * entry is an object with an `action`, or the action itself; an entry whose `action` is null stands for the reset.
 * Options of the reset come from `reset` or the top level of the log, and then from the request's other keys.
 */
export function readEpisodeLog(log: readonly unknown[] | JsonObject, request: JsonObject): LoggedEpisode {
  const outer = Array.isArray(log) ? {} : (log as JsonObject);
  const key = Array.isArray(log) ? undefined : LOG_LISTS.find((name) => Array.isArray(outer[name]));
  const entries = (Array.isArray(log) ? log : outer[key!]) as readonly unknown[];
  const place = ['body', 'episode_log', ...(key === undefined ? [] : [key])];
  const { episode_log, session_id, ...options } = request;
  const { reset = {} } = outer;
  if (!isJsonObject(reset)) {
    const place = ['body', 'episode_log', 'reset'];
    throw InvalidInputError.of('dict_type', place, 'Input should be a valid dictionary', reset);
  }
  return {
    reset: { ...options, ...outer, ...reset },
    actions: entries.flatMap((entry, index) => {
      const wrapped = isJsonObject(entry) && 'action' in entry;
      if (wrapped && entry.action === null) return [];
      return [
        wrapped
          ? { action: entry.action, loc: [...place, index, 'action'] }
          : { action: entry, loc: [...place, index] },
      ];
    }),
  };
}

/** The session that a log may be of. */
export interface SessionOfLog {
  /** Options of its reset. */
  readonly reset: ResetOptions;
  /** True when the request names it; otherwise it is the caller's latest. */
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
