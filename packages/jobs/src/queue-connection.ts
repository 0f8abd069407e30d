import { type Processor, Queue, QueueEvents, Worker, type WorkerOptions } from 'bullmq';
import { Redis } from 'ioredis';
import { JobError, type Json } from './job.ts';

/** Data of a job in the queue. */
export interface QueuedJob {
  readonly kind: string;
  readonly input: Json;
  readonly shared: readonly string[];
}

/** Workers that a job may lose before it counts as the job's own fault. */
export const MOST_LOST_WORKERS = 10;

const CONNECT_MS = 5000;

/** Part that a process plays at a queue. */
type QueueRole = 'submitter' | 'worker';

/** Shared bytes are kept this long after somebody has last asked for them, s. */
const BYTES_KEPT_S = 7 * 24 * 3600;

/** Somebody who has not been heard of for this long is gone, ms. */
const PRESENCE_MS = 45_000;

const CANCELLED = 'servegym:cancelled';

/**
 * The queue of one version of the code, on Redis, and beside the jobs the data that submitters and workers share. Jobs are
 * seen only by those of the same version.
 */
export class QueueConnection {
  /** The address, without its password. */
  readonly address: string;
  readonly #name: string;
  readonly #redis: Redis;

  /**
   * Connects to `redis://` or `rediss://`.
   * @throws {JobError} `QUEUE_ADDRESS` or `QUEUE_UNREACHABLE`.
   */
  static async open(url: string, version: string): Promise<QueueConnection> {
    const address = readAddress(url);
    const attempt = new Redis(url, {
      lazyConnect: true,
      connectTimeout: CONNECT_MS,
      maxRetriesPerRequest: 0,
      retryStrategy: () => null,
    });
    let reason: Error | undefined;
    attempt.on('error', (error) => {
      reason = error;
    });
    try {
      await attempt.connect();
      await attempt.ping();
    } catch (error) {
      throw unreachable(address, reason ?? (error as Error));
    } finally {
      attempt.disconnect();
    }
    return new QueueConnection(url, address, version);
  }

  private constructor(url: string, address: string, version: string) {
    this.address = address;
    this.#name = `servegym-jobs-${version}`;
    // From here on it waits for a server that comes back.
    const retryStrategy = (times: number) => Math.min(100 * times, 2000);
    this.#redis = quiet(new Redis(url, { maxRetriesPerRequest: null, retryStrategy }));
  }

  queue(): Queue<QueuedJob, Json> {
    return quiet(new Queue<QueuedJob, Json>(this.#name, { connection: this.#redis }));
  }

  events(): QueueEvents {
    return quiet(new QueueEvents(this.#name, { connection: this.#redis }));
  }

  /**
   * @param concurrency Jobs at once.
   * @param lockMs A job of a worker that has not been heard of for this long goes to another one, ms.
   */
  worker(
    processor: Processor<QueuedJob, Json>,
    concurrency: number,
    lockMs: number,
  ): Worker<QueuedJob, Json> {
    const options: WorkerOptions = {
      connection: this.#redis,
      concurrency,
      lockDuration: lockMs,
      stalledInterval: Math.max(500, lockMs / 2),
      maxStalledCount: MOST_LOST_WORKERS,
      // A worker is back at work this long after the server is; by default it waits for 15 s.
      runRetryDelay: 1000,
    };
    return quiet(new Worker<QueuedJob, Json>(this.#name, processor, options));
  }

  close(): void {
    this.#redis.disconnect();
  }

  async hasBytes(name: string): Promise<boolean> {
    return (await this.#redis.expire(bytesKey(name), BYTES_KEPT_S)) === 1;
  }

  async putBytes(name: string, bytes: Uint8Array): Promise<void> {
    await this.#redis.set(bytesKey(name), Buffer.from(bytes), 'EX', BYTES_KEPT_S);
  }

  async getBytes(name: string): Promise<Uint8Array | null> {
    return this.#redis.getBuffer(bytesKey(name));
  }

  /** Announces a submitter or worker and its version of the code; to be repeated within `PRESENCE_MS`. */
  async announce(role: QueueRole, id: string, version: string): Promise<void> {
    await this.#redis.zadd(presenceKey(role), String(Date.now()), `${id} ${version}`);
    await this.#redis.zremrangebyscore(presenceKey(role), '-inf', String(Date.now() - 10 * PRESENCE_MS));
  }

  async leave(role: QueueRole, id: string): Promise<void> {
    const all = await this.#redis.zrange(presenceKey(role), '0', '-1');
    const own = all.filter((member) => member.startsWith(`${id} `));
    if (own.length > 0) await this.#redis.zrem(presenceKey(role), ...own);
  }

  /** Versions of those present, one entry each. */
  async versions(role: QueueRole): Promise<string[]> {
    const since = String(Date.now() - PRESENCE_MS);
    const present = await this.#redis.zrangebyscore(presenceKey(role), since, '+inf');
    return present.map((member) => member.slice(member.indexOf(' ') + 1));
  }

  /** Asks the workers to stop jobs, or takes that back. */
  async setCancelled(jobIds: readonly string[], cancelled: boolean): Promise<void> {
    if (jobIds.length === 0) return;
    if (cancelled) await this.#redis.sadd(CANCELLED, ...jobIds);
    else await this.#redis.srem(CANCELLED, ...jobIds);
  }

  /** Jobs of the list that are to stop. */
  async cancelledOf(jobIds: readonly string[]): Promise<string[]> {
    if (jobIds.length === 0) return [];
    const isMember = await this.#redis.smismember(CANCELLED, ...jobIds);
    return jobIds.filter((_, i) => isMember[i] === 1);
  }
}

function bytesKey(name: string): string {
  return `servegym:bytes:${name}`;
}

function presenceKey(role: QueueRole): string {
  return `servegym:${role}s`;
}

function readAddress(url: string): string {
  const parsed = URL.parse(url);
  if (parsed === null || !['redis:', 'rediss:'].includes(parsed.protocol)) {
    throw new JobError(
      'QUEUE_ADDRESS',
      `Expected the address of a Redis server, such as redis://localhost:6379, got \`${url}\``,
    );
  }
  if (parsed.password !== '') parsed.password = '***';
  return parsed.href;
}

function unreachable(address: string, error: Error): JobError {
  const { code } = error as { code?: string };
  const reason = error.message === '' ? (code ?? 'no answer') : error.message;
  return new JobError(
    'QUEUE_UNREACHABLE',
    `Cannot use the queue at ${address}: ${reason}. Start the server there, or correct the address`,
  );
}

/** Losses of the connection are told where they matter; an unheard `error` would end the process. */
function quiet<T extends { on(event: 'error', listener: (error: Error) => void): unknown }>(emitter: T): T {
  emitter.on('error', () => undefined);
  return emitter;
}
