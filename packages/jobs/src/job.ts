/** What JSON can hold. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** A piece of work that can be done anywhere: its result depends on nothing but its kind, its input and the code. */
export interface Job {
  /** One of the engine's `JobKinds`. */
  readonly kind: string;
  readonly input: Json;
  /** What `JobEngine.share` answered, for bytes that the job reads with `JobContext.shared`. */
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

/** How far a run is. */
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
