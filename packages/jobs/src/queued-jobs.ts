// `@servegym/jobs/queue`: jobs through Redis. Needs the packages `bullmq` and `ioredis`.

import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Queue, QueueEvents } from 'bullmq';
import type { RedisOptions } from 'ioredis';
import {
  attemptDelayMs,
  bytesName,
  CANCELLED,
  decodeFailure,
  type Job,
  type JobEngine,
  JobError,
  type Json,
  MOST_ATTEMPTS,
  type RunOptions,
  RunState,
} from './job.ts';
import { openQueueConnection, type QueueConnection, type QueuedJob, quiet } from './queue-connection.ts';
import { MOST_LOST_WORKERS } from './queue-worker.ts';

export { QueueWorker } from './queue-worker.ts';

export interface QueuedJobsOptions {
  /** `redis://...`, or options of ioredis. */
  readonly url: string | RedisOptions;
  /** Version of the code. Workers of another one leave the jobs alone. */
  readonly version: string;
  /** Told what a person who waits wants to know: that there is no worker, that the connection is lost. */
  readonly onNotice?: (notice: string) => void;
  /** After this long without news the jobs are looked up, ms. Default 5,000. */
  readonly patienceMs?: number;
}

/** Results are kept this long, for whoever asks for the same jobs again, s. */
const RESULTS_KEPT_S = 7 * 24 * 3600;
const CHUNK = 500;
const ANNOUNCE_MS = 10_000;
/** Jobs at once on workers that are not known yet. */
const ASSUMED_WIDTH = 32;

class Run extends RunState {
  /** Settled when all jobs are done, or one has failed. */
  readonly end = Promise.withResolvers<void>();
  lastNewsAt = performance.now();
  /** Times that the queue has failed with a job. */
  readonly lost = new Map<string, number>();
  /** Jobs being resubmitted. */
  readonly returning = new Set<string>();
}

/** A job with which the queue has failed so often is given up. */
const MOST_LOST = 5;

/**
 * Has jobs done by the workers of a queue. Jobs are named by what they are: who submits them again, in another process
 * or after a crash, gets the results that are there, and those that are under way.
 */
export class QueuedJobs implements JobEngine {
  readonly width = ASSUMED_WIDTH;
  readonly #id = randomUUID();
  readonly #connection: QueueConnection;
  readonly #queue: Queue<QueuedJob, Json>;
  readonly #events: QueueEvents;
  readonly #options: QueuedJobsOptions;
  readonly #runs = new Set<Run>();
  readonly #timer: NodeJS.Timeout;
  readonly #patienceMs: number;
  #announcedAt = Number.NEGATIVE_INFINITY;
  #look: Promise<void> | undefined;

  private constructor(connection: QueueConnection, options: QueuedJobsOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#patienceMs = options.patienceMs ?? 5000;
    const { name, redis } = connection;
    this.#queue = quiet(new Queue<QueuedJob, Json>(name, { connection: redis }));
    this.#events = quiet(new QueueEvents(name, { connection: redis }));
    this.#events.on('completed', ({ jobId, returnvalue }) => {
      this.#hear(jobId, (run) => run.finish(jobId, returnvalue as Json));
    });
    this.#events.on('progress', ({ jobId, data }) => {
      this.#hear(jobId, (run) => run.progress(jobId, Number(data)));
    });
    this.#events.on('failed', ({ jobId, failedReason }) => {
      this.#hear(jobId, (run) => this.#failed(run, jobId, failedReason));
    });
    const look = () => {
      if (this.#runs.size === 0) return;
      const done = () => {
        this.#look = undefined;
      };
      this.#look ??= this.#lookAround().then(done, done);
    };
    this.#timer = setInterval(look, Math.min(1000, this.#patienceMs));
  }

  /** @throws {JobError} when nobody answers at the address. */
  static async connect(options: QueuedJobsOptions): Promise<QueuedJobs> {
    const connection = await openQueueConnection(options.url, options.version);
    const jobs = new QueuedJobs(connection, options);
    await Promise.all([jobs.#queue.waitUntilReady(), jobs.#events.waitUntilReady()]);
    return jobs;
  }

  async share(bytes: Uint8Array): Promise<string> {
    const name = bytesName(bytes);
    if (!(await this.#connection.hasBytes(name))) await this.#connection.putBytes(name, bytes);
    return name;
  }

  async run(jobs: readonly Job[], options: RunOptions = {}): Promise<Json[]> {
    options.signal?.throwIfAborted();
    const run = new Run(jobs, this.#options.version, options);
    const cancel = () => run.end.reject(options.signal?.reason);
    options.signal?.addEventListener('abort', cancel, { once: true });
    this.#runs.add(run);
    try {
      if (run.isDone) return run.results;
      // A failure while they are being submitted is answered below.
      run.end.promise.catch(() => undefined);
      await this.#whileDown(() => this.#connection.announce('submitter', this.#id));
      for (const ids of chunksOf([...run.open])) await this.#whileDown(() => this.#submit(run, ids, true));
      await run.end.promise;
      return run.results;
    } finally {
      this.#runs.delete(run);
      options.signal?.removeEventListener('abort', cancel);
      if (!run.isDone) await this.#cancel([...run.open]);
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#connection.leave('submitter', this.#id).catch(() => undefined);
    try {
      await Promise.all([this.#queue.close(), this.#events.close()]);
    } finally {
      this.#connection.redis.disconnect();
    }
  }

  #hear(id: string, tell: (run: Run) => void): void {
    for (const run of this.#runs) {
      if (!run.open.has(id)) continue;
      run.lastNewsAt = performance.now();
      tell(run);
      if (run.isDone) run.end.resolve();
    }
  }

  #failed(run: Run, id: string, reason: string): void {
    const failure = decodeFailure(reason);
    if (failure !== null && failure.code !== CANCELLED) {
      run.end.reject(JobError.failed(run.jobs.get(id)!.kind, failure));
      return;
    }
    // Its failure is heard of, and also found when the jobs are looked up.
    if (run.returning.has(id)) return;
    run.returning.add(id);
    // Somebody else who wanted it does no longer, or the queue has failed with it; this run still wants it.
    const again = failure === null ? this.#countLoss(run, id, reason) : Promise.resolve();
    again
      .then(() => this.#whileDown(() => this.#submit(run, [id], true)))
      .catch(run.end.reject)
      .finally(() => run.returning.delete(id));
  }

  /** @throws {JobError} `QUEUE_LOST_JOB` when there is no point in submitting it once more. */
  async #countLoss(run: Run, id: string, reason: string): Promise<void> {
    const { kind } = run.jobs.get(id)!;
    const queued = await this.#whileDown(() => this.#queue.getJob(id));
    const deaths = queued?.stalledCounter ?? 0;
    if (deaths > MOST_LOST_WORKERS) {
      const problem = `${deaths} workers died or froze with the same \`${kind}\` job. See what they said, and whether they have the memory for it`;
      throw new JobError('QUEUE_LOST_JOB', problem);
    }
    const lost = (run.lost.get(id) ?? 0) + 1;
    run.lost.set(id, lost);
    if (lost > MOST_LOST) {
      const problem = `The queue at ${this.#connection.address} failed ${lost} times with the same \`${kind}\` job, the last time with: ${reason}`;
      throw new JobError('QUEUE_LOST_JOB', problem);
    }
  }

  /** Adds those that are not in the queue, and takes the results of those that are done. */
  async #submit(run: Run, ids: readonly string[], retryFailed: boolean): Promise<void> {
    const known = await Promise.all(ids.map((id) => this.#queue.getJob(id)));
    const missing: string[] = [];
    const kept: string[] = [];
    for (const [i, job] of known.entries()) {
      const id = ids[i];
      if (!job) missing.push(id);
      else if (!job.finishedOn) {
        if (retryFailed) kept.push(id);
      } else if (!job.failedReason) run.finish(id, job.returnvalue);
      else if (retryFailed) {
        await job.remove();
        missing.push(id);
      } else this.#failed(run, id, job.failedReason);
    }
    await this.#connection.setCancelled([...kept, ...missing], false);
    await this.#queue.addBulk(
      missing.map((jobId) => {
        const { kind, input, shared = [] } = run.jobs.get(jobId)!;
        return { name: kind, data: { kind, input, shared }, opts: { jobId, ...JOB_OPTIONS } };
      }),
    );
    if (run.isDone) run.end.resolve();
  }

  /** Now and then: who is there, and whether news have been missed. */
  async #lookAround(): Promise<void> {
    const now = performance.now();
    if (now - this.#announcedAt > ANNOUNCE_MS) {
      this.#announcedAt = now;
      const { address } = this.#connection;
      const { version, onNotice } = this.#options;
      const notice = (others: string) =>
        others === ''
          ? `no worker is at ${address} yet; start one with: servegym worker --queue ${address}`
          : `the workers at ${address} are of version ${others}, these jobs of ${version}; start workers of that version`;
      await this.#connection.meet('submitter', this.#id, notice, onNotice);
    }
    for (const run of this.#runs) {
      if (now - run.lastNewsAt < this.#patienceMs) continue;
      run.lastNewsAt = now;
      for (const ids of chunksOf([...run.open])) await this.#submit(run, ids, false);
    }
  }

  /** The waiting ones go; the workers are asked to stop the others. */
  async #cancel(ids: readonly string[]): Promise<void> {
    const remove = async () => {
      for (const chunk of chunksOf(ids)) {
        await this.#connection.setCancelled(chunk, true);
        // One that runs is locked, and is not removed.
        await Promise.all(chunk.map((id) => this.#queue.remove(id).catch(() => 0)));
      }
    };
    await Promise.race([remove().catch(() => undefined), pause(CANCEL_MS, undefined, { ref: false })]);
  }

  /** Does it again when the server has gone away in the middle of it. */
  async #whileDown<T>(work: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        if (attempt === MOST_CONNECT_ATTEMPTS || error instanceof JobError) throw error;
        if (attempt === 1) {
          this.#options.onNotice?.(`lost the queue at ${this.#connection.address}; trying again`);
        }
        await pause(Math.min(attemptDelayMs(attempt), 5000));
      }
    }
  }
}

const CANCEL_MS = 5000;
const MOST_CONNECT_ATTEMPTS = 20;

const JOB_OPTIONS = {
  attempts: MOST_ATTEMPTS,
  backoff: { type: 'exponential', delay: attemptDelayMs(1) },
  removeOnComplete: { age: RESULTS_KEPT_S },
  removeOnFail: { age: RESULTS_KEPT_S },
} as const;

function chunksOf<T>(items: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(items.length / CHUNK) }, (_, i) =>
    items.slice(i * CHUNK, (i + 1) * CHUNK),
  );
}
