import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Redis, type RedisOptions, ReplyError } from 'ioredis';
import type { EnvironmentError } from '../protocol/definition.ts';
import { openEnvError } from '../protocol/errors.ts';
import { maskUrls } from '../protocol/mask-urls.ts';
import { withDefaults } from '../protocol/read-json.ts';
import { type EnvironmentName, resetDigest, stepDigest, ZSTD_MARK } from './journal-entry.ts';
import {
  chainedJournal,
  ENTRY_BYTES,
  type EntryWriter,
  type Logger,
  SESSION_BYTES,
  type SessionJournal,
  type SessionStore,
  STORE_DEFAULTS,
  StoreMonitor,
  storedSession,
  storeError,
} from './session-store.ts';

/** Last format of the sessions, which each has in its hash. Only those with a compressed reset have format 3; those without one have format 2. */
const FORMAT = 3;

/** The answer of `take`; empty when the session has actions and no reset, and the format alone when it is a later one. */
type RedisSession = [
  environment: string,
  version: string,
  episode: string,
  reset: string,
  client: string,
  steps: string,
  digest: string,
  actions: string[],
];

/** Sessions of a client that one write looks at to make room. */
const SCANNED_SESSIONS = 50;

const COMMON = `
  local owner, retention, id, client = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
  local clients, sessions = ARGV[5], ARGV[6]
  local session, actions = KEYS[1], KEYS[2]`;

/**
 * A client has its sessions, by the time of their first reset, and beside them the bytes of each and, as the field
 * `total`, of all. `resize` counts bytes more of a session; `room` deletes the client's oldest sessions that rest.
 */
const QUOTA = `
  local function resize(of, member, bytes)
    redis.call('HINCRBY', clients .. of .. ':bytes', 'total', bytes)
    redis.call('HINCRBY', clients .. of .. ':bytes', member, bytes)
    redis.call('PEXPIRE', clients .. of, retention)
    redis.call('PEXPIRE', clients .. of .. ':bytes', retention)
  end
  local function drop(of, member)
    local bytes = redis.call('HGET', clients .. of .. ':bytes', member)
    if bytes then redis.call('HINCRBY', clients .. of .. ':bytes', 'total', -bytes) end
    redis.call('HDEL', clients .. of .. ':bytes', member)
    redis.call('ZREM', clients .. of, member)
    redis.call('DEL', sessions .. member, sessions .. member .. ':actions')
  end
  local function room(of, bytes, most, rest)
    if of == '' then return true end
    local function fits() return tonumber(redis.call('HGET', clients .. of .. ':bytes', 'total') or 0) + bytes <= tonumber(most) end
    if fits() then return true end
    for _, member in ipairs(redis.call('ZRANGE', clients .. of, 0, ${SCANNED_SESSIONS - 1})) do
      if member ~= id and tonumber(retention) - redis.call('PTTL', sessions .. member) > tonumber(rest) then drop(of, member) end
      if fits() then return true end
    end
    return false
  end`;

/**
 * Each script checks the owner and acts in one go. A session is a hash `{format, owner, environment, version, client,
 * episode, reset, steps, digest}` and beside it a list of its actions.
 */
const REDIS_SCRIPTS = {
  saveReset: `${COMMON}${QUOTA}
    local environment, version, episode, reset, digest = ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11]
    local kept = redis.call('HMGET', session, 'owner', 'client')
    if kept[1] and kept[1] ~= owner then return 'taken' end
    client = kept[2] or client
    local bytes = ${SESSION_BYTES} + #reset
    if client ~= '' then bytes = bytes - tonumber(redis.call('HGET', clients .. client .. ':bytes', id) or 0) end
    if not room(client, bytes, ARGV[12], ARGV[13]) then return 'quota' end
    redis.call('DEL', session, actions)
    local format = string.sub(reset, 1, ${ZSTD_MARK.length}) == '${ZSTD_MARK}' and ${FORMAT} or 2
    redis.call('HSET', session, 'format', format, 'owner', owner, 'environment', environment, 'version', version, 'client', client,
      'episode', episode, 'reset', reset, 'steps', 0, 'digest', digest)
    redis.call('PEXPIRE', session, retention)
    if client ~= '' then
      local time = redis.call('TIME')
      redis.call('ZADD', clients .. client, 'NX', string.format('%d%06d', time[1], time[2]), id)
      resize(client, id, bytes)
    end
    return 'saved'`,
  saveStep: `${COMMON}${QUOTA}
    local index, action, digest = tonumber(ARGV[7]), ARGV[8], ARGV[9]
    local kept = redis.call('HMGET', session, 'owner', 'client', 'steps', 'digest')
    if not kept[1] then return 'deleted' end
    if kept[1] ~= owner then return 'taken' end
    local length = redis.call('LLEN', actions)
    local steps = tonumber(kept[3] or length)
    if steps == index + 1 and kept[4] == digest and length == index + 1 then
      -- A write, which replicas are waited for to have.
      redis.call('PEXPIRE', session, retention)
      return 'saved'
    end
    if steps ~= index or length ~= index then return 'gap' end
    local of = kept[2] or ''
    if not room(of, ${ENTRY_BYTES} + #action, ARGV[10], ARGV[11]) then return 'quota' end
    redis.call('HSET', session, 'steps', index + 1, 'digest', digest)
    redis.call('RPUSH', actions, action)
    redis.call('PEXPIRE', session, retention)
    redis.call('PEXPIRE', actions, retention)
    if of ~= '' then resize(of, id, ${ENTRY_BYTES} + #action) end
    return 'saved'`,
  take: `${COMMON}
    if redis.call('EXISTS', session) == 0 then return redis.call('EXISTS', actions) == 1 and {} end
    local format = redis.call('HGET', session, 'format')
    if tonumber(format or 2) > ${FORMAT} then return {format} end
    redis.call('HSET', session, 'owner', owner)
    redis.call('PEXPIRE', session, retention)
    redis.call('PEXPIRE', actions, retention)
    local kept = redis.call('HMGET', session, 'environment', 'version', 'episode', 'reset', 'client', 'steps', 'digest')
    for field = 1, 7 do kept[field] = kept[field] or '' end
    kept[8] = redis.call('LRANGE', actions, 0, -1)
    return kept`,
  remove: `${COMMON}${QUOTA}
    local kept = redis.call('HMGET', session, 'owner', 'client')
    if kept[1] ~= owner then return 0 end
    if kept[2] and kept[2] ~= '' then drop(kept[2], id) end
    return redis.call('DEL', session, actions)`,
} as const;

type Script = keyof typeof REDIS_SCRIPTS;

/** Options of the store. Redis's own `maxmemory` limits all sessions together. */
const DEFAULTS = {
  ...STORE_DEFAULTS,
  /** Limit of the sessions of one client, bytes. */
  maxClientBytes: 2 ** 28,
  /** Longest time of a command, and of a lost connection, before the session's step fails, ms. */
  timeoutMs: 5000,
  /** A connection on which a command waits this long for its answer is dead: another one is made, which sends it again, ms. */
  deadAfterMs: 1500,
  /** Longest wait for a replica to have an entry, ms. */
  replicaMs: 200,
  /** Interval of the probes that find a dead connection while nobody plays, ms. */
  probeIntervalMs: 1000,
};
type RedisSessionStoreOptions = Readonly<typeof DEFAULTS>;

const SESSION = 'openenv:session:';
const CLIENT = 'openenv:client:';

/**
 * Keeps sessions in Redis, so that servers on several machines can take them over from one another. An entry is as safe
 * as the server keeps its writes: with an append-only file, up to the last second.
 *
 * With Sentinels, an entry is answered when a replica has it too, so that the one that they promote has all of them; where no
 * replica answers in time, it is answered all the same, and the condition tells.
 *
 * @param url `redis://...` or `rediss://...`, or options of ioredis, as with Sentinels.
 * @throws EnvironmentError `STORE_ERROR` when nobody answers there.
 */
export async function openRedisStore(
  url: string | RedisOptions,
  given: Partial<RedisSessionStoreOptions> = {},
): Promise<SessionStore> {
  const options: RedisSessionStoreOptions = withDefaults(DEFAULTS, given);
  const { timeoutMs, deadAfterMs } = options;
  let isOpen = false;
  const how: RedisOptions = {
    lazyConnect: true,
    connectTimeout: timeoutMs,
    commandTimeout: timeoutMs,
    socketTimeout: deadAfterMs,
    retryStrategy: (times) => Math.min(50 * times, 1000),
    sentinelRetryStrategy: (times) => (isOpen ? Math.min(50 * times, 1000) : null),
    // A primary that became a replica: connects to the new one, and sends the command again.
    reconnectOnError: ({ message }) => (message.startsWith('READONLY') ? 2 : false),
  };
  const redis = typeof url === 'string' ? new Redis(url, how) : new Redis({ ...url, ...how });
  let reason: Error | undefined;
  redis.on('error', (error) => {
    reason = error;
  });
  try {
    await redis.connect();
    await redis.ping();
    isOpen = true;
  } catch (error) {
    redis.disconnect();
    const { message } = reason ?? (error as Error);
    throw storeError(`Could not open the sessions in Redis at ${addressOf(url)}: ${message}`, error);
  }
  await warnOfEviction(redis, options.logger);
  return redisStore(redis, options);
}

function addressOf(url: string | RedisOptions): string {
  if (typeof url === 'string') return maskUrls(url);
  return `${url.name} of ${url.sentinels?.map(({ host, port }) => `${host}:${port}`)}`;
}

/** All other policies than `noeviction` drop sessions when memory runs out, as these have a time to live. */
async function warnOfEviction(redis: Redis, logger: Logger): Promise<void> {
  // No warning for a server that does not say its policy.
  const info = await redis.info('memory').catch(() => '');
  const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1];
  if (policy === undefined || policy === 'noeviction') return;
  logger.warn({ policy }, 'Redis may evict sessions: set its maxmemory-policy to noeviction');
}

function redisStore(redis: Redis, options: RedisSessionStoreOptions): SessionStore {
  const { maxClientBytes, restMs, retentionMs } = options;
  const owner = randomUUID();
  const monitor = new StoreMonitor(options.logger);
  const { write, reading } = watchedCommands(redis, monitor, options.replicaMs);
  const probe = () => void reading(() => redis.ping()).catch(() => {});
  const probeTimer = setInterval(probe, options.probeIntervalMs).unref();
  for (const [name, lua] of Object.entries(REDIS_SCRIPTS)) {
    // Redis is sent the digest of a script that it knows.
    redis.defineCommand(name, { lua, numberOfKeys: 2 });
  }
  const scripts = redis as never as Record<Script, (...values: (string | number)[]) => Promise<unknown>>;

  return {
    open: journal,
    async take(id) {
      const kept = (await reading(() => run('take', id, '')).catch((error: Error) => {
        // The keys hold something else than a session.
        const { message } = error.cause as Error;
        if (/WRONGTYPE/.test(message)) throw damaged(id, 'its keys hold no session.');
        throw error;
      })) as RedisSession | [format: string] | [] | null;
      if (kept === null) return undefined;
      if (kept.length === 0) throw damaged(id, 'its reset is missing.');
      if (kept.length === 1) {
        const formats = `The session has format ${kept[0]}, this version reads formats up to ${FORMAT}`;
        throw storeError(`${formats}. Use the version of servegym that wrote it, or another --store.`);
      }
      const [environmentId, version, episodeId, reset, client, , digest, actions] = kept;
      const environment = { id: environmentId, version };
      const damage = damageOf(id, kept);
      if (damage !== undefined) damaged(id, damage);
      const about = { environment, client, episodeId };
      return storedSession(about, [reset, ...actions], damage, journal(id, environment, client, digest));
    },
    async remove(id) {
      await write(() => run('remove', id, ''));
    },
    condition: () => ({ ...monitor.condition, bytes: null }),
    async close() {
      clearInterval(probeTimer);
      await redis.quit().catch(() => redis.disconnect());
    },
  };

  /** @param digest of a session that was taken over */
  function journal(id: string, environment: EnvironmentName, client = '', digest?: string): SessionJournal {
    let isKept = digest !== undefined;
    const writer: EntryWriter = {
      async reset(episodeId, text, digest) {
        await save('saveReset', id, client, environment.id, environment.version, episodeId, text, digest);
        isKept = true;
      },
      step: (index, text, digest) => save('saveStep', id, client, index, text, digest),
      isOwned: async () => !isKept || (await reading(() => redis.hget(SESSION + id, 'owner'))) === owner,
    };
    return chainedJournal(id, environment, writer, digest);
  }

  /** Runs a script that saves an entry. @throws EnvironmentError when it answers that the entry was not saved */
  async function save(script: Script, id: string, client: string, ...values: (string | number)[]) {
    const answer = await write(() => run(script, id, client, ...values, maxClientBytes, restMs));
    if (answer === 'saved') return;
    if (answer === 'gap') throw damaged(id, 'steps before this one are missing.');
    if (answer !== 'quota')
      throw openEnvError(answer === 'taken' ? 'SESSION_TAKEN' : 'SESSION_DELETED', { id });
    monitor.overQuota();
    throw openEnvError('STORE_QUOTA', { bytes: maxClientBytes });
  }

  function damaged(id: string, damage: string): EnvironmentError {
    monitor.damaged(id, damage);
    return openEnvError('SESSION_DAMAGED', { id, damage });
  }

  function run(script: Script, id: string, client: string, ...values: (string | number)[]): Promise<unknown> {
    const keys = [SESSION + id, `${SESSION}${id}:actions`];
    return scripts[script](...keys, owner, retentionMs, id, client, CLIENT, SESSION, ...values);
  }
}

/** Commands that write, and those that read, with what the monitor and the client are told of them. */
function watchedCommands(redis: Redis, monitor: StoreMonitor, replicaMs: number) {
  const replicated = replication(redis, replicaMs);
  return { write, reading };

  async function write<T>(command: () => Promise<T>): Promise<T> {
    monitor.began();
    try {
      const { answer, isReplicated } = await replicated(command);
      monitor.written(1);
      if (!isReplicated)
        monitor.failed(0, 'no replica of Redis has the last entries, which may be lost with the primary');
      return answer;
    } catch (error) {
      const reason = `Redis: ${(error as Error).message}`;
      monitor.failed(1, reason);
      if (error instanceof ReplyError) throw storeError(`The session could not be saved: ${reason}.`, error);
      // The answer was lost, or the command waits to be sent again.
      const problem = `It is not known whether the session could be saved: ${reason}. Its state tells the last step that was.`;
      throw storeError(problem, error);
    }
  }

  async function reading<T>(command: () => Promise<T>): Promise<T> {
    try {
      const answer = await command();
      monitor.readAgain();
      return answer;
    } catch (error) {
      const reason = `Redis: ${(error as Error).message}`;
      if (!(error instanceof ReplyError)) monitor.failed(0, reason);
      throw storeError(`The session could not be read: ${reason}.`, error);
    }
  }
}

/**
 * Answers how to run a command that writes until a replica has what it wrote, where there are Sentinels. One `WAIT` is for
 * all commands that were answered before it. It tells only of its own connection, so that a command is run again on the next.
 */
function replication(redis: Redis, replicaMs: number) {
  let connections = 0;
  redis.on('ready', () => connections++);
  let next: Promise<number> | undefined;
  const wait = async () => {
    await nextTurn();
    next = undefined;
    return redis.wait(1, replicaMs);
  };
  return async <T>(command: () => Promise<T>): Promise<{ answer: T; isReplicated: boolean }> => {
    for (;;) {
      const answer = await command();
      if (redis.options.sentinels == null) return { answer, isReplicated: true };
      const connection = connections;
      next ??= wait();
      const replicas = await next;
      if (connection === connections) return { answer, isReplicated: replicas > 0 };
    }
  };
}

function damageOf(id: string, kept: RedisSession): string | undefined {
  const [, , , , , steps, digest, actions] = kept;
  const missing = Number(steps) - actions.length;
  if (missing > 0) return `${missing} of its ${steps} steps are missing.`;
  if (missing !== 0) return `it has ${actions.length} steps, not ${steps || 'any'}.`;
  const [environment, version, episodeId, reset] = kept;
  const first = resetDigest(id, { id: environment, version }, episodeId, reset);
  return actions.reduce(stepDigest, first) === digest ? undefined : 'its entries were changed.';
}
