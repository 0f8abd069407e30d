import type { Context } from 'hono';
import { HTTPException } from 'hono/http-exception';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { errorAnswer } from '../error-catalogue.ts';
import type { Logger } from '../operations/logger.ts';
import type { ErrorBody } from '../protocol/http-body.ts';

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
  if (error instanceof HttpProblem) {
    return problem(context, error.status, {
      detail: error.message,
      ...(error.code !== undefined && { code: error.code }),
    });
  }
  if (error instanceof HTTPException) return problem(context, error.status, { detail: error.message });
  const { code, status, retryAfter, message, issues } = errorAnswer(error);
  if (code === 'VALIDATION_ERROR') return problem(context, status, { detail: issues });
  if (retryAfter !== undefined) context.header('retry-after', String(retryAfter));
  if (code !== 'EXECUTION_ERROR') return problem(context, status, { detail: message, code });
  if (context.req.raw.signal.aborted) return problem(context, 503, { detail: 'The client has left.' });
  logger.error({ err: error, method: context.req.method, path: context.req.path }, 'request failed');
  return problem(context, status, { detail: `Internal Server Error: ${message}`, code });
}

function problem(context: Context, status: ContentfulStatusCode, body: ErrorBody): Response {
  return context.json(body, status);
}
