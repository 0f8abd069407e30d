import { createHash } from 'node:crypto';
import type { Job, Json, RunOptions } from './job.ts';

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

/** The name of shared bytes. */
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
