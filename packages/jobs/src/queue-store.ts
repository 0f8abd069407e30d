import type { Redis } from 'ioredis';

/** Who is at a queue. */
export type QueueRole = 'submitter' | 'worker';

/** Shared bytes are kept this long after somebody has last asked for them, s. */
export const BYTES_KEPT_S = 7 * 24 * 3600;

/** Somebody who has not been heard of for this long is gone, ms. */
export const PRESENCE_MS = 45_000;

const CANCELLED = 'servegym:cancelled';

/** Data that submitters and workers share beside the jobs, on Redis. */
export class QueueStore {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
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
    const present = await this.#redis.zrangebyscore(
      presenceKey(role),
      String(Date.now() - PRESENCE_MS),
      '+inf',
    );
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
