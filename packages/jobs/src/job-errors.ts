/** What a job said when it failed. */
export interface JobFailure {
  readonly name: string;
  readonly message: string;
  /** The stable code of the error, where it had one. */
  readonly code?: string;
  /** Whether the caller can correct it, as the error said by its own `isInputError`. */
  readonly isInputError?: boolean;
}

/** A job has failed, on every attempt where it was tried again. */
export class JobFailedError extends Error {
  override readonly name = 'JobFailedError';
  readonly code = 'JOB_FAILED';
  readonly kind: string;
  readonly failure: JobFailure;
  readonly isInputError: boolean;
  constructor(kind: string, failure: JobFailure) {
    super(`A \`${kind}\` job failed: ${failure.message}`);
    this.kind = kind;
    this.failure = failure;
    this.isInputError = failure.isInputError === true;
  }
}

/** What an error tells of a job. */
export function failureOf(error: unknown): JobFailure {
  if (error instanceof JobFailedError) return error.failure;
  if (!(error instanceof Error)) return { name: 'Error', message: String(error) };
  const { code, isInputError } = error as { code?: unknown; isInputError?: unknown };
  return {
    name: error.name,
    message: error.message,
    ...(typeof code === 'string' && { code }),
    ...(isInputError === true && { isInputError }),
  };
}

/** What can be wrong with a queue. */
export type JobQueueErrorCode =
  /** An address of no Redis server. */
  | 'QUEUE_ADDRESS'
  /** Nobody answers there. */
  | 'QUEUE_UNREACHABLE'
  /** The jobs in the queue are for other code than the worker's. */
  | 'QUEUE_VERSION'
  /** A job that the worker has no module for, or bytes that are no longer there. */
  | 'QUEUE_JOB'
  /** A job that the queue has lost over and over: its workers died with it, or never could tell how it went. */
  | 'QUEUE_LOST_JOB';

/** A queue that cannot be used as it is. */
export class JobQueueError extends Error {
  override readonly name = 'JobQueueError';
  readonly isInputError = true;
  readonly code: JobQueueErrorCode;
  constructor(code: JobQueueErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
