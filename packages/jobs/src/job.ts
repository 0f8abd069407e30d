/** JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** A piece of work that can be done anywhere: its result depends on nothing but its kind, its input and the code. */
export interface Job {
  /** One of the engine's `JobKinds`. */
  readonly kind: string;
  readonly input: Json;
  /** Names from `JobEngine.share`, for bytes that the job reads with `JobContext.shared`. */
  readonly shared?: readonly string[];
}

/** The module of each kind of job, as a URL. The module exports `runJob`. */
export type JobKinds = Readonly<Record<string, string>>;

export interface JobModule {
  /** Does the work, on a thread of its own. What it answers goes through JSON: no `undefined`, no `NaN`. */
  runJob(input: Json, context: JobContext): Json | Promise<Json>;
}

export interface JobContext {
  /** Bytes that were shared under this name. */
  shared(name: string): Uint8Array;
  /** Says which share of the job is done, 0..1. */
  report(share: number): void;
}

/** Progress of a run. */
export interface RunProgress {
  readonly finished: number;
  readonly planned: number;
  /** Share of the whole that is done, running jobs included, 0..1. */
  readonly share: number;
}

export interface RunOptions {
  /** Stops what has not finished; `run` then throws the signal's reason. */
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: RunProgress) => void;
  /** Told of each result once, as it comes. `index` is the job's place in the list. */
  readonly onResult?: (result: Json, index: number) => void;
}

/** Does jobs. The results do not depend on which engine does them, on how many threads or machines. */
export interface JobEngine {
  /**
   * Does all jobs and answers their results, in the order of the jobs. Jobs that are the same are done once.
   * @throws {JobFailedError} when one has failed on every attempt; the others are cancelled.
   */
  run(jobs: readonly Job[], options?: RunOptions): Promise<Json[]>;
  /** Makes bytes known to jobs, which are sent once and not with each of them. Answers their name. */
  share(bytes: Uint8Array): Promise<string>;
  /** Jobs that it can do at once, as far as it knows. */
  readonly width: number;
  close(): Promise<void>;
}

/** Error of a failed job. */
export interface JobFailure {
  readonly name: string;
  readonly message: string;
  /** The stable code of the error, where it had one. */
  readonly code?: string;
  /** True when the caller can correct it, as the error said by its own `isInputError`. */
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

/** An error as JSON. */
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

/** Codes of `JobQueueError`. */
type JobQueueErrorCode =
  /** An address of no Redis server. */
  | 'QUEUE_ADDRESS'
  /** There is no answer from the queue's address. */
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

/** The code of a job that was stopped because nobody wants it any more. */
export const CANCELLED = 'JOB_CANCELLED';

/** Of an error a queue keeps the message and nothing else: how a job failed travels in it, under this key. */
const KEY = 'jobFailure';

/** The message of the error by which a worker tells a queue how a job failed. */
export function encodeFailure({ name, message, code, isInputError }: JobFailure): string {
  return JSON.stringify({ [KEY]: { name, message, code, isInputError } });
}

/**
 * Error of a failed job, from the message that a queue kept; `null` for a message that no worker has encoded. The queue has
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
