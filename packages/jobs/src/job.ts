import { createHash } from 'node:crypto';

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

interface RunProgress {
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
   * @throws {JobError} `JOB_FAILED` when one has failed on every attempt; the others are cancelled.
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

type JobErrorCode =
  /** A job that has failed, on every attempt where it was tried again. */
  | 'JOB_FAILED'
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

/** A job that has failed, or a queue that cannot be used as it is. */
export class JobError extends Error {
  override readonly name = 'JobError';
  readonly code: JobErrorCode;
  /** Error of the job that failed. */
  readonly failure: JobFailure | undefined;
  readonly isInputError: boolean;
  constructor(code: JobErrorCode, message: string, failure?: JobFailure) {
    super(message);
    this.code = code;
    this.failure = failure;
    this.isInputError = failure === undefined || failure.isInputError === true;
  }

  static failed(kind: string, failure: JobFailure): JobError {
    return new JobError('JOB_FAILED', `A \`${kind}\` job failed: ${failure.message}`, failure);
  }
}

export function failureOf(error: unknown): JobFailure {
  if (error instanceof JobError && error.failure !== undefined) return error.failure;
  if (!(error instanceof Error)) return { name: 'Error', message: String(error) };
  const { code, isInputError } = error as { code?: unknown; isInputError?: unknown };
  return {
    name: error.name,
    message: error.message,
    ...(typeof code === 'string' && { code }),
    ...(isInputError === true && { isInputError }),
  };
}

/** The code of a job that was stopped because nobody wants it any more. */
export const CANCELLED = 'JOB_CANCELLED';

/**
 * The message of the error by which a worker tells a queue how a job failed: of an error a queue keeps the message and
 * nothing else.
 */
export function encodeFailure(jobFailure: JobFailure): string {
  return JSON.stringify({ jobFailure });
}

/**
 * Error of a failed job, from the message that a queue kept; `null` for a message that no worker has encoded. The queue has
 * then failed on its own: a worker lost its connection before it could tell the result, or died over and over.
 */
export function decodeFailure(message: string): JobFailure | null {
  let failure: Partial<JobFailure> | undefined;
  try {
    failure = JSON.parse(message)?.jobFailure;
  } catch {
    return null;
  }
  const isFailure = typeof failure?.name === 'string' && typeof failure.message === 'string';
  return isFailure ? (failure as JobFailure) : null;
}

/** The results of a run as they come in: each job once, with those that are the same done together. */
export class RunState {
  /** One job for each name. */
  readonly jobs: ReadonlyMap<string, Job>;
  /** Names of the jobs without a result. */
  readonly open: ReadonlySet<string>;
  /** In the order of the jobs; `null` where there is none yet. */
  readonly results: Json[];
  readonly #options: RunOptions;
  readonly #indices: ReadonlyMap<string, readonly number[]>;
  readonly #open: Set<string>;
  readonly #shares = new Map<string, number>();
  #finished = 0;

  constructor(jobs: readonly Job[], version: string, options: RunOptions) {
    this.#options = options;
    this.results = new Array(jobs.length).fill(null);
    const ids = jobs.map((job) => jobId(job, version));
    this.#indices = Map.groupBy(jobs.keys(), (index) => ids[index]);
    this.jobs = new Map(jobs.map((job, index) => [ids[index], job]));
    this.open = this.#open = new Set(ids);
  }

  get isDone(): boolean {
    return this.#open.size === 0;
  }

  /** Takes a result; one that has come before, or that nobody waits for, is passed over. */
  finish(id: string, result: Json): void {
    if (!this.#open.delete(id)) return;
    this.#shares.delete(id);
    for (const index of this.#indices.get(id)!) {
      this.results[index] = result;
      this.#finished += 1;
      this.#options.onResult?.(result, index);
    }
    this.#tell();
  }

  progress(id: string, share: number): void {
    if (!this.#open.has(id) || !(share >= 0 && share <= 1)) return;
    this.#shares.set(id, share);
    this.#tell();
  }

  #tell(): void {
    if (this.#options.onProgress === undefined) return;
    const planned = this.results.length;
    let done = this.#finished;
    for (const [id, share] of this.#shares) done += share * this.#indices.get(id)!.length;
    this.#options.onProgress({ finished: this.#finished, planned, share: done / planned });
  }
}

/**
 * The name of a job and of its result: the same for the same kind, input, shared bytes and version of the code,
 * whoever submits it.
 */
function jobId(job: Job, version: string): string {
  const identity: Json = [version, job.kind, job.input, job.shared ?? []];
  // A queue takes no name that could be a number.
  return `j${createHash('sha256').update(canonicalJson(identity)).digest('hex').slice(0, 40)}`;
}

export function bytesName(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex').slice(0, 40);
}

/** JSON in which the order of keys does not matter. */
function canonicalJson(value: Json): string {
  return JSON.stringify(value, (_, inner) => {
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) return inner;
    return Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}

/** Attempts before a job counts as failed. */
export const MOST_ATTEMPTS = 3;

const FIRST_DELAY_MS = 200;

/** Time to wait after the given attempt (counted from 1), which doubles from one to the next, ms. */
export function attemptDelayMs(attempt: number): number {
  return FIRST_DELAY_MS * 2 ** (attempt - 1);
}
