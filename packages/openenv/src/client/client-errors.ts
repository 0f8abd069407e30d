import type { ErrorCode } from '../protocol/error-code.ts';
import type { ValidationIssue } from '../protocol/validation-issue.ts';
import type { ErrorData } from '../protocol/web-socket-message.ts';

/** The server answered with an error. The session is as it was before the request. */
export class ServerError extends Error {
  override readonly name: string = 'ServerError';
  readonly code: ErrorCode;
  /** What is wrong with the input, with `VALIDATION_ERROR`. */
  readonly issues: readonly ValidationIssue[];
  /** Why the environment refused, for instance `EPISODE_OVER`, where it says so. */
  readonly reason: string | undefined;
  constructor({ message, code, errors = [], reason }: ErrorData) {
    super(`${message} (${code})`);
    this.code = code;
    this.issues = errors;
    this.reason = reason;
  }
}

/** The server has no free session. Try again later, or ask for a higher cap. */
export class CapacityError extends ServerError {
  override readonly name = 'CapacityError';
  readonly activeSessions: number | undefined;
  readonly maxSessions: number | undefined;
  constructor(data: ErrorData) {
    super(data);
    this.activeSessions = data.active_sessions;
    this.maxSessions = data.max_sessions;
  }
}

/** The connection could not be made, or was lost. */
export class ConnectionError extends Error {
  override readonly name: string = 'ConnectionError';
}

/** No reply came in time. The connection is dropped, so that a late reply can never be taken for that of another request. */
export class TimeoutError extends ConnectionError {
  override readonly name = 'TimeoutError';
}

export function serverError(data: ErrorData): ServerError {
  return data.code === 'CAPACITY_REACHED' ? new CapacityError(data) : new ServerError(data);
}
