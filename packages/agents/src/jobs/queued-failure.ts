import type { JobFailure } from './job-errors.ts';

/** The code of a job that was stopped because nobody wants it any more. */
export const CANCELLED = 'JOB_CANCELLED';

/** A queue keeps of an error only the message; the failure travels in it. */
export function encodeFailure(failure: JobFailure): string {
  return JSON.stringify(failure);
}

/** Codes of a connection that broke, as Node, Redis and PostgreSQL word them when their server goes away. */
const BROKEN_CONNECTION =
  /ECONNRESET|ECONNREFUSED|EPIPE|ETIMEDOUT|Connection is closed|Connection terminated|terminating connection|the database system is/i;

/** Whether it was not the job that failed, but the connection of the worker that wanted to say how it went. */
export function isBrokenConnection({ name, code, message }: JobFailure): boolean {
  return name === 'Error' && code === undefined && BROKEN_CONNECTION.test(message);
}

/** The failure in a message, which may also be one of the queue's own. */
export function decodeFailure(message: string): JobFailure {
  try {
    const failure: unknown = JSON.parse(message);
    if (typeof failure === 'object' && failure !== null && 'message' in failure) return failure as JobFailure;
  } catch {
    // Not one of ours.
  }
  return { name: 'Error', message };
}
