import { setMaxListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import type { Job, JobEngine, JobKinds, Json, RunOptions } from './job.ts';
import { failureOf, JobFailedError, JobQueueError } from './job-errors.ts';
import { bytesName } from './job-id.ts';
import { attemptDelayMs, MOST_ATTEMPTS } from './retries.ts';
import { RunState } from './run-state.ts';
import { ThreadPool } from './thread-pool.ts';

export interface LocalJobsOptions {
  readonly kinds: JobKinds;
  readonly threads: number;
  /** Times that a job is tried before it has failed. */
  readonly attempts?: number;
  /** Heap that a thread may use, MB; a job that needs more fails with `ERR_WORKER_OUT_OF_MEMORY`. Default: that of the process. */
  readonly heapMb?: number;
}

/** Does jobs on threads of this process. */
export class LocalJobs implements JobEngine {
  readonly #pool: ThreadPool;
  readonly #attempts: number;

  constructor({ kinds, threads, attempts = MOST_ATTEMPTS, heapMb }: LocalJobsOptions) {
    this.#attempts = attempts;
    this.#pool = new ThreadPool(kinds, threads, heapMb);
  }

  get width(): number {
    return this.#pool.threads;
  }

  async share(bytes: Uint8Array): Promise<string> {
    const name = bytesName(bytes);
    if (!this.#pool.hasShared(name)) this.#pool.setShared(name, bytes);
    return name;
  }

  async run(jobs: readonly Job[], options: RunOptions = {}): Promise<Json[]> {
    options.signal?.throwIfAborted();
    const state = new RunState(jobs, '', options);
    const stop = new AbortController();
    setMaxListeners(0, stop.signal);
    const cancel = () => stop.abort(options.signal?.reason);
    options.signal?.addEventListener('abort', cancel, { once: true });
    try {
      await Promise.all(
        Array.from(state.jobs, async ([id, job]) => {
          const onShare = (share: number) => state.progress(id, share);
          state.finish(id, await this.#attempt(job, stop.signal, onShare));
        }),
      );
      return state.results;
    } catch (error) {
      options.signal?.throwIfAborted();
      throw error;
    } finally {
      options.signal?.removeEventListener('abort', cancel);
      stop.abort();
    }
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }

  async #attempt(job: Job, signal: AbortSignal, onShare: (share: number) => void): Promise<Json> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#pool.run({ job, signal, onShare });
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof JobQueueError) throw error;
        if (attempt === this.#attempts) {
          throw error instanceof JobFailedError ? error : new JobFailedError(job.kind, failureOf(error));
        }
      }
      await pause(attemptDelayMs(attempt), undefined, { signal });
    }
  }
}
