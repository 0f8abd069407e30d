import type { Context } from 'hono';
import { HTTPException } from 'hono/http-exception';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { EnvironmentError } from '../definition.ts';
import { InvalidInputError } from '../input/invalid-input-error.ts';
import type { Logger } from '../operations/logger.ts';
import type { ErrorBody } from '../protocol/http-body.ts';
import {
  EnvironmentFactoryError,
  isStoredSessionError,
  ServerDrainingError,
  SessionCapacityError,
  SessionReplayError,
  type StoredSessionError,
  UnknownSessionError,
} from '../sessions/session-errors.ts';

/** Errors of environments that have a status of their own; the others are 400. */
const ENVIRONMENT_ERROR_STATUS: Readonly<Record<string, ContentfulStatusCode>> = {
  NOT_RESET: 409,
  EPISODE_OVER: 409,
  UNKNOWN_TASK: 404,
  WORK_QUEUE_FULL: 429,
  WORK_TIMEOUT: 503,
  WORK_MEMORY: 503,
};

const STORED_SESSION_STATUS: Readonly<Record<StoredSessionError['code'], ContentfulStatusCode>> = {
  STORE_ERROR: 503,
  STORE_QUOTA: 429,
  SESSION_TAKEN: 409,
  SESSION_DAMAGED: 409,
  SESSION_DELETED: 410,
};

/** An HTTP answer that is an error. Routes throw it. */
export class HttpProblem extends Error {
  override readonly name = 'HttpProblem';
  readonly status: ContentfulStatusCode;
  readonly code: string | undefined;
  constructor(status: ContentfulStatusCode, detail: string, code?: string) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

/** Turns whatever a route threw into the JSON body that OpenEnv clients expect. */
export function answerError(error: Error, context: Context, logger: Logger): Response {
  if (error instanceof InvalidInputError) return problem(context, 422, { detail: error.issues });
  if (error instanceof HttpProblem) {
    return problem(context, error.status, {
      detail: error.message,
      ...(error.code !== undefined && { code: error.code }),
    });
  }
  if (error instanceof UnknownSessionError) {
    return problem(context, 404, { detail: error.message, code: 'UNKNOWN_SESSION' });
  }
  if (error instanceof EnvironmentError) {
    if (error.code === 'WORK_QUEUE_FULL') context.header('retry-after', '1');
    return problem(context, ENVIRONMENT_ERROR_STATUS[error.code] ?? 400, {
      detail: error.message,
      code: error.code,
    });
  }
  if (error instanceof SessionCapacityError) {
    context.header('retry-after', '1');
    return problem(context, 503, { detail: error.message, code: 'CAPACITY_REACHED' });
  }
  if (error instanceof ServerDrainingError) {
    context.header('retry-after', '1');
    return problem(context, 503, { detail: error.message, code: 'DRAINING' });
  }
  if (error instanceof EnvironmentFactoryError) {
    return problem(context, 500, { detail: error.message, code: 'FACTORY_ERROR' });
  }
  if (isStoredSessionError(error)) {
    const { code } = error;
    if (code === 'STORE_QUOTA') context.header('retry-after', '60');
    return problem(context, STORED_SESSION_STATUS[code], { detail: error.message, code });
  }
  if (error instanceof SessionReplayError) {
    return problem(context, 409, { detail: error.message, code: 'REPLAY_FAILED' });
  }
  if (error instanceof HTTPException) return problem(context, error.status, { detail: error.message });
  if (context.req.raw.signal.aborted) return problem(context, 503, { detail: 'The client has left.' });
  logger.error({ err: error, method: context.req.method, path: context.req.path }, 'request failed');
  return problem(context, 500, {
    detail: `Internal Server Error: ${error.message}`,
    code: 'EXECUTION_ERROR',
  });
}

function problem(context: Context, status: ContentfulStatusCode, body: ErrorBody): Response {
  return context.json(body, status);
}
