import { setMaxListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { MessageChannel } from 'node:worker_threads';
import { Piscina } from 'piscina';
import {
  attemptDelayMs,
  bytesName,
  failureOf,
  type Job,
  type JobEngine,
  JobError,
  type JobKinds,
  type Json,
  MOST_ATTEMPTS,
  type RunOptions,
  RunState,
} from './job.ts';
import type { ThreadAnswer, ThreadTask } from './job-thread.ts';

export class ThreadPool {
  /** Threads. */
  readonly width: number;
  readonly #kinds: JobKinds;
  readonly #piscina: Piscina<ThreadTask, ThreadAnswer>;
  readonly #shared = new Map<string, Uint8Array>();
  readonly #niceness: number;

  constructor(kinds: JobKinds, threads: number, heapMb?: number, niceness = 0) {
    if (!Number.isSafeInteger(threads) || threads < 1) {
      throw new RangeError(`Expected a whole number of threads from 1, got ${threads}`);
    }
    this.width = threads;
    this.#niceness = niceness;
    this.#kinds = kinds;
    this.#piscina = new Piscina({
      filename: new URL('job-thread.ts', import.meta.url).href,
      minThreads: 1,
      maxThreads: threads,
      idleTimeout: 10_000,
      // A thread that blocks on `Atomics.wait` between jobs cannot report its progress.
      atomics: 'disabled',
      ...(heapMb !== undefined && { resourceLimits: { maxOldGenerationSizeMb: heapMb } }),
    });
  }

  hasShared(name: string): boolean {
    return this.#shared.has(name);
  }

  /** Keeps bytes where every thread can read them without a copy. */
  setShared(name: string, bytes: Uint8Array): void {
    const memory = new Uint8Array(new SharedArrayBuffer(bytes.length));
    memory.set(bytes);
    this.#shared.set(name, memory);
  }

  /** Forgets shared bytes, the oldest first, but for these names, while there are more than `most`. */
  trimShared(names: ReadonlySet<string>, most: number): void {
    let total = 0;
    for (const { length } of this.#shared.values()) total += length;
    for (const [name, { length }] of this.#shared) {
      if (total <= most) return;
      if (names.has(name)) continue;
      this.#shared.delete(name);
      total -= length;
    }
  }

  /** @throws {JobError} when the job throws; whatever the pool throws when its thread dies or `signal` aborts. */
  async runJob(job: Job, signal: AbortSignal, onShare: (share: number) => void): Promise<Json> {
    const module = this.#kinds[job.kind];
    if (module === undefined) {
      const known = Object.keys(this.#kinds).join(', ');
      throw new JobError('QUEUE_JOB', `Expected a job of a known kind (${known}), got \`${job.kind}\``);
    }
    const shared = new Map<string, Uint8Array>();
    for (const name of job.shared ?? []) {
      const bytes = this.#shared.get(name);
      if (bytes === undefined) throw new JobError('QUEUE_JOB', `Nobody has shared the bytes \`${name}\``);
      shared.set(name, bytes);
    }
    const { port1, port2 } = new MessageChannel();
    port1.on('message', onShare);
    port1.unref();
    try {
      const progress = { progress: port2, niceness: this.#niceness };
      const task: ThreadTask = { module, input: job.input, shared, ...progress };
      const answer = await this.#piscina.run(task, { signal, transferList: [port2] });
      if (!answer.ok) throw JobError.failed(job.kind, answer.failure);
      return answer.result;
    } finally {
      port1.close();
    }
  }

  async close(): Promise<void> {
    await this.#piscina.destroy();
  }
}

export interface LocalJobsOptions {
  readonly kinds: JobKinds;
  readonly threads: number;
  /** Times that a job is tried before it has failed. */
  readonly attempts?: number;
  /** Heap that a thread may use, MB; a job that needs more fails with `ERR_WORKER_OUT_OF_MEMORY`. Default: that of the process. */
  readonly heapMb?: number;
  /** Niceness of the threads, 0 to 19: they give way to the thread that made them where cores are short. Linux only. Default 0. */
  readonly niceness?: number;
}

/** Does jobs on threads of this process. */
export class LocalJobs extends ThreadPool implements JobEngine {
  readonly #attempts: number;

  constructor({ kinds, threads, attempts = MOST_ATTEMPTS, heapMb, niceness }: LocalJobsOptions) {
    super(kinds, threads, heapMb, niceness);
    this.#attempts = attempts;
  }

  async share(bytes: Uint8Array): Promise<string> {
    const name = bytesName(bytes);
    if (!this.hasShared(name)) this.setShared(name, bytes);
    return name;
  }

  async run(jobs: readonly Job[], options: RunOptions = {}): Promise<Json[]> {
    options.signal?.throwIfAborted();
    const state = new RunState(jobs, '', options);
    const stop = new AbortController();
    const signal = AbortSignal.any(options.signal ? [stop.signal, options.signal] : [stop.signal]);
    setMaxListeners(0, signal);
    try {
      await Promise.all(
        Array.from(state.jobs, async ([id, job]) => {
          const onShare = (share: number) => state.progress(id, share);
          state.finish(id, await this.#attempt(job, signal, onShare));
        }),
      );
      return state.results;
    } catch (error) {
      options.signal?.throwIfAborted();
      throw error;
    } finally {
      stop.abort();
    }
  }

  async #attempt(job: Job, signal: AbortSignal, onShare: (share: number) => void): Promise<Json> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.runJob(job, signal, onShare);
      } catch (error) {
        signal.throwIfAborted();
        // A job that cannot be begun fails in the same way each time.
        if (error instanceof JobError && (error.failure === undefined || attempt === this.#attempts))
          throw error;
        if (attempt === this.#attempts) throw JobError.failed(job.kind, failureOf(error));
      }
      await pause(attemptDelayMs(attempt), undefined, { signal });
    }
  }
}
