import type { JobFailure } from './job-errors.ts';

/** The code of a job that was stopped because nobody wants it any more. */
export const CANCELLED = 'JOB_CANCELLED';

/** A queue keeps of an error only the message; the failure travels in it. */
export function encodeFailure(failure: JobFailure): string {
  return JSON.stringify(failure);
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
