import { excerpt } from '../input/excerpt.ts';
import { InvalidInputError } from '../input/invalid-input-error.ts';
import { isJsonObject, type JsonObject } from '../json/json-object.ts';

/** What an `episode_log` says was done. Observations, rewards and scores in it are dropped unread. */
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
    throw new InvalidInputError([
      {
        type: 'dict_type',
        loc: ['body', 'episode_log', 'reset'],
        msg: 'Input should be a valid dictionary',
        input: excerpt(reset),
      },
    ]);
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
