import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import type { ResetOptions } from '../definition.ts';
import { maskUrls } from '../operations/mask-urls.ts';
import { SessionStoreError, SessionTakenError } from './session-errors.ts';
import type { SessionJournal, SessionStore, StoredSession } from './session-store.ts';

export interface RedisSessionStoreOptions {
  /** A session that nobody has used for this long is forgotten, ms. Default seven days. */
  readonly retentionMs?: number;
  /** How long a command may take, and a connection may be away, before the session's step fails, ms. Default 5 s. */
  readonly timeoutMs?: number;
}

const PREFIX = 'openenv:session:';

/**
 * Each script checks the owner and acts in one go. A session is a hash `{owner, environment, version, episode, reset}`
 * and beside it a list of its actions.
 */
const SCRIPTS = {
  saveReset: `
    local owner = redis.call('HGET', KEYS[1], 'owner')
    if owner and owner ~= ARGV[1] then return 0 end
    redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'environment', ARGV[3], 'version', ARGV[4], 'episode', ARGV[5], 'reset', ARGV[6])
    redis.call('DEL', KEYS[2])
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    return 1`,
  saveStep: `
    if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
    if redis.call('LLEN', KEYS[2]) ~= tonumber(ARGV[3]) then return -1 end
    redis.call('RPUSH', KEYS[2], ARGV[4])
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    redis.call('PEXPIRE', KEYS[2], ARGV[2])
    return 1`,
  take: `
    if redis.call('EXISTS', KEYS[1]) == 0 then return false end
    redis.call('HSET', KEYS[1], 'owner', ARGV[1])
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    redis.call('PEXPIRE', KEYS[2], ARGV[2])
    local kept = redis.call('HMGET', KEYS[1], 'environment', 'version', 'episode', 'reset')
    return {kept[1], kept[2], kept[3], kept[4], redis.call('LRANGE', KEYS[2], 0, -1)}`,
  remove: `
    if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
    return redis.call('DEL', KEYS[1], KEYS[2])`,
} as const;

type Script = keyof typeof SCRIPTS;

/**
 * Keeps sessions in Redis, so that servers on several machines can take them over from one another. An entry is as safe
 * as the server keeps its writes: with an append-only file, up to the last second.
 *
 * @param url `redis://...` or `rediss://...`.
 * @throws SessionStoreError when nobody answers there.
 */
export async function openRedisStore(
  url: string,
  options: RedisSessionStoreOptions = {},
): Promise<SessionStore> {
  const { retentionMs = 7 * 86_400_000, timeoutMs = 5000 } = options;
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: timeoutMs,
    commandTimeout: timeoutMs,
    retryStrategy: (times) => Math.min(50 * times, 1000),
  });
  let reason: Error | undefined;
  redis.on('error', (error) => {
    reason = error;
  });
  try {
    await redis.connect();
    await redis.ping();
  } catch (error) {
    redis.disconnect();
    throw new SessionStoreError(
      `Could not open the sessions in Redis at ${maskUrls(url)}: ${(reason ?? (error as Error)).message}`,
      {
        cause: error,
      },
    );
  }
  return new RedisSessionStore(redis, retentionMs);
}

class RedisSessionStore implements SessionStore {
  readonly #redis: Redis;
  readonly #retentionMs: number;
  readonly #owner = randomUUID();

  constructor(redis: Redis, retentionMs: number) {
    this.#redis = redis;
    this.#retentionMs = retentionMs;
  }

  open(id: string, environment: { readonly id: string; readonly version: string }): SessionJournal {
    return new RedisJournal(this, id, environment);
  }

  async take(id: string): Promise<StoredSession | undefined> {
    const kept = (await this.run('take', 'read', id, this.#retentionMs)) as RedisSession | null;
    if (kept === null) return undefined;
    const [environmentId, version, episodeId, reset, actions] = kept;
    const environment = { id: environmentId, version };
    return {
      ...{ environment, episodeId },
      reset: JSON.parse(reset) as ResetOptions,
      actions: actions.map((action) => JSON.parse(action) as unknown),
      journal: new RedisJournal(this, id, environment),
    };
  }

  async remove(id: string): Promise<void> {
    await this.run('remove', 'write', id);
  }

  async close(): Promise<void> {
    try {
      await this.#redis.quit();
    } catch {
      this.#redis.disconnect();
    }
  }

  async saveReset(
    id: string,
    environment: { readonly id: string; readonly version: string },
    episodeId: string,
    options: ResetOptions,
  ): Promise<void> {
    const { id: environmentId, version } = environment;
    const reset = JSON.stringify(options);
    const saved = await this.run(
      'saveReset',
      'write',
      id,
      this.#retentionMs,
      environmentId,
      version,
      episodeId,
      reset,
    );
    if (saved === 0) throw new SessionTakenError(id);
  }

  async saveStep(id: string, index: number, action: unknown): Promise<void> {
    const saved = await this.run('saveStep', 'write', id, this.#retentionMs, index, JSON.stringify(action));
    if (saved === 0) throw new SessionTakenError(id);
    if (saved === -1)
      throw new SessionStoreError('The session could not be saved: steps before this one are missing.');
  }

  async isOwned(id: string): Promise<boolean> {
    const owner = await this.#command('read', () => this.#redis.hget(PREFIX + id, 'owner'));
    return owner === null || owner === this.#owner;
  }

  run(script: Script, what: 'read' | 'write', id: string, ...values: (string | number)[]): Promise<unknown> {
    const keys = [PREFIX + id, `${PREFIX}${id}:actions`];
    return this.#command(what, () => this.#redis.eval(SCRIPTS[script], 2, ...keys, this.#owner, ...values));
  }

  async #command<T>(what: 'read' | 'write', command: () => Promise<T>): Promise<T> {
    try {
      return await command();
    } catch (error) {
      const done = what === 'write' ? 'saved' : 'read';
      throw new SessionStoreError(`The session could not be ${done}: Redis: ${(error as Error).message}.`, {
        cause: error,
      });
    }
  }
}

type RedisSession = [environment: string, version: string, episode: string, reset: string, actions: string[]];

class RedisJournal implements SessionJournal {
  readonly #store: RedisSessionStore;
  readonly #id: string;
  readonly #environment: { readonly id: string; readonly version: string };

  constructor(
    store: RedisSessionStore,
    id: string,
    environment: { readonly id: string; readonly version: string },
  ) {
    this.#store = store;
    this.#id = id;
    this.#environment = environment;
  }

  reset(episodeId: string, options: ResetOptions): Promise<void> {
    return this.#store.saveReset(this.#id, this.#environment, episodeId, options);
  }

  step(index: number, action: unknown): Promise<void> {
    return this.#store.saveStep(this.#id, index, action);
  }

  isOwned(): Promise<boolean> {
    return this.#store.isOwned(this.#id);
  }
}
