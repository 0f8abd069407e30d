import { MessageChannel } from 'node:worker_threads';
import { Piscina } from 'piscina';
import type { Job, JobKinds, Json } from './job.ts';
import { JobFailedError, JobQueueError } from './job-errors.ts';
import type { ThreadAnswer, ThreadTask } from './job-thread.ts';

/** A job for a thread. */
export interface ThreadJob {
  readonly job: Job;
  readonly signal: AbortSignal;
  readonly onShare: (share: number) => void;
}

/** The threads that do jobs, on this machine. */
export class ThreadPool {
  readonly threads: number;
  readonly #kinds: JobKinds;
  readonly #piscina: Piscina<ThreadTask, ThreadAnswer>;
  readonly #shared = new Map<string, Uint8Array>();

  constructor(kinds: JobKinds, threads: number, heapMb?: number) {
    if (!Number.isSafeInteger(threads) || threads < 1) {
      throw new RangeError(`Expected a whole number of threads from 1, got ${threads}`);
    }
    this.threads = threads;
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

  /** @throws {JobFailedError} when the job throws; whatever the pool throws when its thread dies or `signal` aborts. */
  async run({ job, signal, onShare }: ThreadJob): Promise<Json> {
    const module = this.#kinds[job.kind];
    if (module === undefined) {
      const known = Object.keys(this.#kinds).join(', ');
      throw new JobQueueError('QUEUE_JOB', `Expected a job of a known kind (${known}), got \`${job.kind}\``);
    }
    const shared = new Map((job.shared ?? []).map((name) => [name, this.#bytes(name)]));
    const { port1, port2 } = new MessageChannel();
    port1.on('message', onShare);
    port1.unref();
    try {
      const task: ThreadTask = { module, input: job.input, shared, progress: port2 };
      const answer = await this.#piscina.run(task, { signal, transferList: [port2] });
      if (!answer.ok) throw new JobFailedError(job.kind, answer.failure);
      return answer.result;
    } finally {
      port1.close();
    }
  }

  async close(): Promise<void> {
    await this.#piscina.destroy();
  }

  #bytes(name: string): Uint8Array {
    const bytes = this.#shared.get(name);
    if (bytes === undefined) throw new JobQueueError('QUEUE_JOB', `Nobody has shared the bytes \`${name}\``);
    return bytes;
  }
}
