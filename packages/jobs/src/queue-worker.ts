import { randomUUID } from 'node:crypto';
import { type Job as BullJob, UnrecoverableError, Worker } from 'bullmq';
import type { RedisOptions } from 'ioredis';
import { CANCELLED, encodeFailure, failureOf, JobError, type JobKinds, type Json } from './job.ts';
import { ThreadPool } from './local-jobs.ts';
import { openQueueConnection, type QueueConnection, type QueuedJob, quiet } from './queue-connection.ts';

export interface QueueWorkerSettings {
  /** `redis://...`, or options of ioredis. */
  readonly url: string | RedisOptions;
  /** Version of the code. Jobs of another one are left alone. */
  readonly version: string;
  readonly kinds: JobKinds;
  readonly threads: number;
  /** The jobs of a worker that has not been heard of for this long go to another one, ms. Default 30,000. */
  readonly lockMs?: number;
  readonly onFinished?: (job: {
    readonly kind: string;
    readonly wallMs: number;
    readonly failed: boolean;
  }) => void;
  readonly onNotice?: (notice: string) => void;
}

/** Workers that a job may lose before it counts as the job's own fault. */
export const MOST_LOST_WORKERS = 10;

const CANCELLATION_CHECK_MS = 1000;
const ANNOUNCE_MS = 10_000;
/** Shared bytes that are kept for later jobs; a job that needs others has them sent again. */
const MOST_SHARED_BYTES = 2 ** 29;

/** Does the jobs of a queue, on threads, so that what the queue must hear of does not wait for them. */
export class QueueWorker {
  readonly #id = randomUUID();
  readonly #settings: QueueWorkerSettings;
  readonly #connection: QueueConnection;
  readonly #pool: ThreadPool;
  readonly #worker: Worker<QueuedJob, Json>;
  /** Names of the shared bytes of each job that runs. */
  readonly #active = new Map<string, readonly string[]>();
  readonly #timers: NodeJS.Timeout[];
  readonly #fetching = new Map<string, Promise<void>>();

  private constructor(settings: QueueWorkerSettings, connection: QueueConnection) {
    this.#settings = settings;
    this.#connection = connection;
    this.#pool = new ThreadPool(settings.kinds, settings.threads);
    const { threads, lockMs = 30_000 } = settings;
    const worker = new Worker<QueuedJob, Json>(
      connection.name,
      (job, _token, signal) => this.#do(job, signal!),
      {
        connection: connection.redis,
        concurrency: threads,
        lockDuration: lockMs,
        stalledInterval: Math.max(500, lockMs / 2),
        maxStalledCount: MOST_LOST_WORKERS,
        // A worker is back at work this long after the server is; by default it waits for 15 s.
        runRetryDelay: 1000,
      },
    );
    this.#worker = quiet(worker);
    this.#timers = [
      setInterval(() => void this.#stopCancelled().catch(() => undefined), CANCELLATION_CHECK_MS),
      setInterval(() => void this.#announce().catch(() => undefined), ANNOUNCE_MS),
    ];
  }

  /**
   * Connects and begins.
   * @throws {JobError} `QUEUE_UNREACHABLE`, or `QUEUE_VERSION` when all who submit jobs there have other code.
   */
  static async start(settings: QueueWorkerSettings): Promise<QueueWorker> {
    const connection = await openQueueConnection(settings.url, settings.version);
    try {
      const others = await connection.othersThan('submitter');
      if (others) {
        throw new JobError(
          'QUEUE_VERSION',
          `The jobs at ${connection.address} are for version ${others}, and this worker is ${settings.version}: its ` +
            'results could differ. Install the version of those who submit the jobs',
        );
      }
      const worker = new QueueWorker(settings, connection);
      await worker.#worker.waitUntilReady();
      await connection.announce('worker', worker.#id);
      return worker;
    } catch (error) {
      connection.redis.disconnect();
      throw error;
    }
  }

  get address(): string {
    return this.#connection.address;
  }

  /** Finishes what it does and leaves the rest to others; with `force` it leaves that too. */
  async close(force = false): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    try {
      await this.#worker.close(force);
      await this.#connection.leave('worker', this.#id).catch(() => undefined);
    } finally {
      await this.#pool.close();
      this.#connection.redis.disconnect();
    }
  }

  async #do(queued: BullJob<QueuedJob, Json>, signal: AbortSignal): Promise<Json> {
    const { kind, shared } = queued.data;
    const started = performance.now();
    let failed = true;
    this.#active.set(queued.id!, shared);
    try {
      for (const name of shared) await this.#fetch(name);
      const result = await this.#run(queued, signal);
      failed = false;
      return result;
    } finally {
      this.#active.delete(queued.id!);
      this.#pool.trimShared(new Set([...this.#active.values()].flat()), MOST_SHARED_BYTES);
      this.#settings.onFinished?.({ kind, wallMs: performance.now() - started, failed });
    }
  }

  /** Every failure of the job is encoded; what is thrown elsewhere and is not, is the queue's. */
  async #run(queued: BullJob<QueuedJob, Json>, signal: AbortSignal): Promise<Json> {
    const onShare = (share: number) => void queued.updateProgress(share).catch(() => undefined);
    try {
      return await this.#pool.runJob(queued.data, signal, onShare);
    } catch (error) {
      if (signal.aborted) {
        throw new UnrecoverableError(encodeFailure({ name: 'Error', message: 'cancelled', code: CANCELLED }));
      }
      const failure = encodeFailure(failureOf(error));
      // Another attempt would have the same modules.
      throw error instanceof JobError && error.failure === undefined
        ? new UnrecoverableError(failure)
        : new Error(failure);
    }
  }

  async #fetch(name: string): Promise<void> {
    if (this.#pool.hasShared(name)) return;
    const download = async () => {
      const bytes = await this.#connection.getBytes(name);
      if (bytes !== null) return this.#pool.setShared(name, bytes);
      const gone = new JobError('QUEUE_JOB', `The bytes \`${name}\` of the job are gone. Submit it again`);
      throw new UnrecoverableError(encodeFailure(failureOf(gone)));
    };
    const fetching = this.#fetching.get(name) ?? download().finally(() => this.#fetching.delete(name));
    this.#fetching.set(name, fetching);
    await fetching;
  }

  async #stopCancelled(): Promise<void> {
    for (const id of await this.#connection.cancelledOf([...this.#active.keys()])) this.#worker.cancelJob(id);
  }

  #announce(): Promise<void> {
    const { version, onNotice } = this.#settings;
    const notice = (others: string) =>
      others
        ? `the jobs at ${this.address} are for version ${others}; this worker is ${version} and leaves them alone`
        : undefined;
    return this.#connection.meet('worker', this.#id, notice, onNotice);
  }
}
