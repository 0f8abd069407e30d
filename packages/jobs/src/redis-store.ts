import type { Redis } from 'ioredis';
import { BYTES_KEPT_S, PRESENCE_MS, type QueueRole, type QueueStore } from './queue-store.ts';

const CANCELLED = 'servegym:cancelled';

/** The store of a queue on Redis. */
export class RedisStore implements QueueStore {
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

  async announce(role: QueueRole, id: string, version: string): Promise<void> {
    await this.#redis.zadd(presenceKey(role), String(Date.now()), `${id} ${version}`);
    await this.#redis.zremrangebyscore(presenceKey(role), '-inf', String(Date.now() - 10 * PRESENCE_MS));
  }

  async leave(role: QueueRole, id: string): Promise<void> {
    const all = await this.#redis.zrange(presenceKey(role), '0', '-1');
    const own = all.filter((member) => member.startsWith(`${id} `));
    if (own.length > 0) await this.#redis.zrem(presenceKey(role), ...own);
  }

  async versions(role: QueueRole): Promise<string[]> {
    const present = await this.#redis.zrangebyscore(
      presenceKey(role),
      String(Date.now() - PRESENCE_MS),
      '+inf',
    );
    return present.map((member) => member.slice(member.indexOf(' ') + 1));
  }

  async setCancelled(jobIds: readonly string[], cancelled: boolean): Promise<void> {
    if (jobIds.length === 0) return;
    if (cancelled) await this.#redis.sadd(CANCELLED, ...jobIds);
    else await this.#redis.srem(CANCELLED, ...jobIds);
  }

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
