import { Redis, type RedisOptions } from 'ioredis';
import { JobError, type Json } from './job.ts';

/** Data of a job in the queue. */
export interface QueuedJob {
  readonly kind: string;
  readonly input: Json;
  readonly shared: readonly string[];
}

const CONNECT_MS = 5000;

type QueueRole = 'submitter' | 'worker';

/** Shared bytes are kept this long after somebody has last asked for them, s. */
const BYTES_KEPT_S = 7 * 24 * 3600;

/** Somebody who has not been heard of for this long is gone, ms. */
const PRESENCE_MS = 45_000;

const CANCELLED = 'servegym:cancelled';

export type QueueConnection = Awaited<ReturnType<typeof openQueueConnection>>;

/**
 * The queue of one version of the code, on Redis, and beside the jobs the data that submitters and workers share. Jobs are
 * seen only by those of the same version. `address` is without its password, `name` that of the queue.
 *
 * Connects to `redis://` or `rediss://`, or as the options say, as to Sentinels.
 * @throws {JobError} `QUEUE_ADDRESS` or `QUEUE_UNREACHABLE`.
 */
export async function openQueueConnection(url: string | RedisOptions, version: string) {
  const address = readAddress(url);
  let isOpen = false;
  // Once it has answered, it waits for a server that comes back.
  const retryStrategy = (times: number) => (isOpen ? Math.min(100 * times, 2000) : null);
  const how = { lazyConnect: true, connectTimeout: CONNECT_MS, maxRetriesPerRequest: null };
  const options: RedisOptions = { ...how, retryStrategy, sentinelRetryStrategy: retryStrategy };
  const redis = typeof url === 'string' ? new Redis(url, options) : new Redis({ ...url, ...options });
  let reason: (Error & { readonly code?: string }) | undefined;
  redis.on('error', (error) => {
    reason = error;
  });
  try {
    await redis.connect();
    await redis.ping();
    isOpen = true;
  } catch (error) {
    redis.disconnect();
    const { message, code = 'no answer' } = reason ?? (error as NonNullable<typeof reason>);
    const problem = `Cannot use the queue at ${address}: ${message || code}. Start the server there, or correct the address`;
    throw new JobError('QUEUE_UNREACHABLE', problem);
  }
  let hasTold = false;
  return {
    ...{ address, version, name: `servegym-jobs-${version}`, redis },
    ...{ hasBytes, putBytes, getBytes, announce, meet, leave, othersThan, setCancelled, cancelledOf },
  };

  async function hasBytes(name: string): Promise<boolean> {
    return (await redis.expire(bytesKey(name), BYTES_KEPT_S)) === 1;
  }

  async function putBytes(name: string, bytes: Uint8Array): Promise<void> {
    await redis.set(bytesKey(name), Buffer.from(bytes), 'EX', BYTES_KEPT_S);
  }

  function getBytes(name: string): Promise<Uint8Array | null> {
    return redis.getBuffer(bytesKey(name));
  }

  /** Announces a submitter or worker; to be repeated within `PRESENCE_MS`. */
  async function announce(role: QueueRole, id: string): Promise<void> {
    const key = presenceKey(role);
    await redis.zadd(key, String(Date.now()), `${id} ${version}`);
    await redis.zremrangebyscore(key, '-inf', String(Date.now() - 10 * PRESENCE_MS));
  }

  /**
   * Announces a submitter or worker, and looks who is at the other end.
   * @param notice Sentence on their versions when none is this one, to be said once until that changes.
   */
  async function meet(
    role: QueueRole,
    id: string,
    notice: (others: string) => string | undefined,
    say: ((notice: string) => void) | undefined,
  ): Promise<void> {
    await announce(role, id);
    const others = await othersThan(role === 'worker' ? 'submitter' : 'worker');
    const told = others === null ? undefined : notice(others);
    if (told !== undefined && !hasTold) say?.(told);
    hasTold = told !== undefined;
  }

  async function leave(role: QueueRole, id: string): Promise<void> {
    await redis.zrem(presenceKey(role), `${id} ${version}`);
  }

  /** The versions of those who are there; `null` when one is of this version. */
  async function othersThan(role: QueueRole): Promise<string | null> {
    const since = String(Date.now() - PRESENCE_MS);
    const present = await redis.zrangebyscore(presenceKey(role), since, '+inf');
    const versions = new Set(present.map((member) => member.slice(member.indexOf(' ') + 1)));
    return versions.has(version) ? null : [...versions].join(', ');
  }

  /** Asks the workers to stop jobs, or takes that back. */
  async function setCancelled(jobIds: readonly string[], cancelled: boolean): Promise<void> {
    if (jobIds.length === 0) return;
    if (cancelled) await redis.sadd(CANCELLED, ...jobIds);
    else await redis.srem(CANCELLED, ...jobIds);
  }

  async function cancelledOf(jobIds: readonly string[]): Promise<string[]> {
    if (jobIds.length === 0) return [];
    const isMember = await redis.smismember(CANCELLED, ...jobIds);
    return jobIds.filter((_, i) => isMember[i] === 1);
  }
}

function bytesKey(name: string): string {
  return `servegym:bytes:${name}`;
}

function presenceKey(role: QueueRole): string {
  return `servegym:${role}s`;
}

function readAddress(url: string | RedisOptions): string {
  if (typeof url !== 'string')
    return `${url.name} of ${url.sentinels?.map(({ host, port }) => `${host}:${port}`)}`;
  const parsed = URL.parse(url);
  if (parsed === null || !['redis:', 'rediss:'].includes(parsed.protocol)) {
    const problem = `Expected the address of a Redis server, such as redis://localhost:6379, got \`${url}\``;
    throw new JobError('QUEUE_ADDRESS', problem);
  }
  if (parsed.password !== '') parsed.password = '***';
  return parsed.href;
}

/** Losses of the connection are told where they matter; an unheard `error` would end the process. */
export function quiet<T extends { on(event: 'error', listener: (error: Error) => void): unknown }>(
  emitter: T,
): T {
  emitter.on('error', () => undefined);
  return emitter;
}
