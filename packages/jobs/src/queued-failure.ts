import type { JobFailure } from './job-errors.ts';

/** The code of a job that was stopped because nobody wants it any more. */
export const CANCELLED = 'JOB_CANCELLED';

/** Of an error a queue keeps the message and nothing else: how a job failed travels in it, under this key. */
const KEY = 'jobFailure';

/** The message of the error by which a worker tells a queue how a job failed. */
export function encodeFailure({ name, message, code, isInputError }: JobFailure): string {
  return JSON.stringify({ [KEY]: { name, message, code, isInputError } });
}

/**
 * How a job failed, from the message that a queue kept; `null` for a message that no worker has encoded. The queue has
 * then failed on its own: a worker lost its connection before it could tell the result, or died over and over.
 */
export function decodeFailure(message: string): JobFailure | null {
  let parsed: unknown;
  try {
    parsed = JSON.parse(message);
  } catch {
    return null;
  }
  const failure = isRecord(parsed) ? parsed[KEY] : undefined;
  if (!isRecord(failure)) return null;
  const { name, message: told, code, isInputError } = failure;
  if (typeof name !== 'string' || typeof told !== 'string') return null;
  return {
    name,
    message: told,
    ...(typeof code === 'string' && { code }),
    ...(isInputError === true && { isInputError }),
  };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
