import { EnvironmentError } from './definition.ts';
import {
  type ErrorCode,
  JSON_RPC_ERROR_CODES,
  type JsonRpcErrorCode,
  type ValidationIssue,
} from './messages.ts';
import { madeAt } from './session-id.ts';

/** One kind of error, as each transport answers it. */
interface ErrorKind {
  /** HTTP status. */
  readonly status: 400 | 403 | 404 | 409 | 410 | 422 | 429 | 500 | 503;
  /** Value of the HTTP header `retry-after`, s. */
  readonly retryAfter?: number;
  readonly jsonRpc: JsonRpcErrorCode;
  /** Code of the WebSocket `error` message. One that differs from the error's own has that as its `reason`. */
  readonly webSocket: ErrorCode;
  /** Fields of the error that clients see: OpenEnv names them. */
  readonly shown?: readonly string[];
  /** The message. Errors without one bring their own. */
  readonly sentence?: (fields: never) => string;
}

/** What is taken when capacity is refused. With `episodes`, it is their requests and not the slots that are too many. */
interface TakenCapacity {
  readonly active_sessions: number;
  readonly max_sessions: number;
  readonly episodes?: { readonly others: number; readonly asked: number; readonly most: number };
}

const { parseError, methodNotFound, invalidParams, internalError, serverError } = JSON_RPC_ERROR_CODES;
const kind = <Code extends ErrorCode>(
  status: ErrorKind['status'],
  jsonRpc: JsonRpcErrorCode,
  webSocket: Code,
) => ({ status, jsonRpc, webSocket }) as const;
const session = (status: ErrorKind['status']) => kind(status, serverError, 'SESSION_ERROR');
const environment = (status: ErrorKind['status']) => kind(status, internalError, 'EXECUTION_ERROR');

/** Every code that the server gives a status of its own. Codes of environments that are not here are answered like `OTHER`. */
export const ERROR_CATALOGUE = {
  INVALID_JSON: {
    ...kind(400, parseError, 'INVALID_JSON'),
    sentence: ({ problem }: { problem: string }) => `Invalid JSON: ${problem}`,
  },
  UNKNOWN_TYPE: {
    ...kind(400, methodNotFound, 'UNKNOWN_TYPE'),
    sentence: ({ type }: { type: string }) => `Unknown message type: ${type}`,
  },
  VALIDATION_ERROR: {
    ...kind(422, internalError, 'VALIDATION_ERROR'),
    sentence: ({ issues }: { issues: readonly ValidationIssue[] }) =>
      issues.map(({ loc, msg }) => `${loc.join('.') || 'input'}: ${msg}`).join('; '),
  },
  EXECUTION_ERROR: environment(500),
  CAPACITY_REACHED: {
    ...kind(503, serverError, 'CAPACITY_REACHED'),
    retryAfter: 1,
    shown: ['active_sessions', 'max_sessions'],
    sentence: ({ active_sessions, max_sessions, episodes }: TakenCapacity) =>
      episodes === undefined
        ? `Server at capacity: ${active_sessions}/${max_sessions} sessions active. Cannot accept new connections.`
        : `Server at capacity: the other episodes in memory have ${episodes.others} of at most ${episodes.most} requests, and this would be ${episodes.asked} more. Ask for a shorter episode or a lower rate, or try again.`,
  },
  FACTORY_ERROR: {
    ...kind(500, serverError, 'FACTORY_ERROR'),
    shown: ['factory_name'],
    sentence: ({ factory_name }: { factory_name: string }) =>
      `Environment factory '${factory_name}' failed to create instance.`,
  },
  UNKNOWN_SESSION: {
    ...kind(404, invalidParams, 'SESSION_ERROR'),
    sentence: ({ id }: { id: string }) =>
      `Unknown session_id: ${id.slice(0, 100)}. Open a session with a reset.`,
  },
  SESSION_ATTACHED: {
    ...session(409),
    sentence: ({ id }: { id: string }) => `Session ${id.slice(0, 100)} already has an attached WebSocket`,
  },
  SESSION_TAKEN: {
    ...session(409),
    sentence: ({ id }: { id: string }) =>
      `Session ${id} was resumed by another server. Resume it again to go on here.`,
  },
  SESSION_DAMAGED: {
    ...session(409),
    sentence: ({ id, damage }: { id: string; damage: string }) =>
      `Session ${id.slice(0, 100)} is damaged: ${damage} Reset it, or open another one.`,
  },
  SESSION_DELETED: {
    ...session(410),
    sentence: ({ id }: { id: string }) => {
      const at = madeAt(id)?.toISOString();
      const opened = at === undefined ? '' : `, opened ${at.slice(0, 10)} at ${at.slice(11, 19)} UTC,`;
      return `Session ${id}${opened} is not kept here: it was closed, unused for too long, evicted to make room, in the memory of a server that ended, or of another server or environment. Open another one.`;
    },
  },
  REPLAY_FAILED: {
    ...session(409),
    sentence: ({ id, problem }: { id: string; problem: string }) =>
      `Session ${id} ${problem} Reset it to go on.`,
  },
  STORE_ERROR: { ...session(503), sentence: ({ problem }: { problem: string }) => problem },
  STORE_QUOTA: {
    ...session(429),
    retryAfter: 60,
    sentence: ({ bytes }: { bytes: number }) =>
      `The session could not be saved: your sessions may hold ${bytes} bytes in all. Close sessions, send smaller resets, or wait until older ones may be deleted.`,
  },
  DRAINING: {
    ...session(503),
    retryAfter: 1,
    sentence: (_: object) => 'The server is shutting down and opens no more sessions. Try again.',
  },
  NOT_RESET: environment(409),
  EPISODE_OVER: environment(409),
  UNKNOWN_TASK: environment(404),
  WORK_QUEUE_FULL: { ...environment(429), retryAfter: 1 },
  WORK_TIMEOUT: environment(503),
  WORK_MEMORY: environment(503),
  CALLS_OFF: environment(403),
  TOO_MANY_CALLS: { ...environment(429), retryAfter: 60 },
  OTHER: environment(400),
} as const satisfies Readonly<Record<string, ErrorKind>>;

type Catalogue = typeof ERROR_CATALOGUE;
type SentenceCode = {
  [Code in keyof Catalogue]: Catalogue[Code] extends { sentence: unknown } ? Code : never;
}[keyof Catalogue];
type Fields<Code extends SentenceCode> = Parameters<Catalogue[Code]['sentence']>[0];

/** An error of the server, with a code and a sentence of the catalogue. */
export function openEnvError<Code extends SentenceCode>(
  code: Code,
  fields: Fields<Code>,
  options?: ErrorOptions,
): EnvironmentError {
  const sentence = ERROR_CATALOGUE[code].sentence as (fields: Fields<Code>) => string;
  const error = new EnvironmentError(code, sentence(fields), options);
  return Object.assign(error, { fields, isInputError: code === 'VALIDATION_ERROR' });
}

/** That nothing is kept of a session: whether it is gone, or never was. */
export function missingSession(id: string): EnvironmentError {
  return openEnvError(madeAt(id) === undefined ? 'UNKNOWN_SESSION' : 'SESSION_DELETED', { id });
}

/** An error as transports answer it; `details` are further fields over JSON-RPC and WebSocket. */
export type ErrorAnswer = Readonly<ReturnType<typeof errorAnswer>>;

/** Looks an error up by its code. One without a code of ours is an `EXECUTION_ERROR`. */
export function errorAnswer(error: unknown) {
  const { message, fields = {} } = error as { message?: string; fields?: Record<string, unknown> };
  const { issues = [] } = fields as { readonly issues?: readonly ValidationIssue[] };
  const code = errorCode(error);
  const kind: ErrorKind = Object.hasOwn(ERROR_CATALOGUE, code)
    ? ERROR_CATALOGUE[code as keyof Catalogue]
    : ERROR_CATALOGUE.OTHER;
  const { shown = [], sentence: _, ...answer } = kind;
  const details: Readonly<Record<string, unknown>> = {
    ...Object.fromEntries(shown.map((name) => [name, fields[name]])),
    ...(code !== kind.webSocket && { reason: code }),
  };
  return { ...answer, code, message: message ?? String(error), issues, details };
}

/** The code of an error: one of the catalogue, or that of an environment. */
export function errorCode(error: unknown): string {
  const { code, isInputError } = Object(error) as { code?: unknown; isInputError?: unknown };
  const isKnown = typeof code === 'string' && (isInputError === true || Object.hasOwn(ERROR_CATALOGUE, code));
  return isKnown ? code : 'EXECUTION_ERROR';
}
