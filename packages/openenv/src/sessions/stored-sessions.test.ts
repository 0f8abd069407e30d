import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, it, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { type RedisProcess, startRedis, startSentinel } from '../../../../maintenance/test-servers/redis.ts';
import { counterEnvironment } from '../fixtures/counter-environment.ts';
import { collectingLogger, getJson, openRawSocket, postJson, startServer } from '../fixtures/start-server.ts';
import { prometheusMetrics } from '../server/prometheus-metrics.ts';
import { openRedisStore } from './redis-session-store.ts';
import { type Logger, type SessionStore, StoreMonitor } from './session-store.ts';
import { openSqliteStore } from './sqlite-session-store.ts';

const ENVIRONMENT = { id: counterEnvironment.id, version: counterEnvironment.version };

interface Options {
  readonly maxClientBytes?: number;
  readonly restMs?: number;
  readonly retentionMs?: number;
  readonly logger?: Logger;
}

/** A kind of store, and how to break it. */
interface Kind {
  readonly name: string;
  start(): Promise<void>;
  stop(): Promise<void>;
  open(options?: Options): Promise<SessionStore>;
  /** Ways to damage a session with four steps, each with what is told of it. */
  readonly damages: Readonly<Record<string, (id: string) => Promise<RegExp>>>;
}

function sqlite(): Kind {
  let path = '';
  const change = (sql: string) => async (id: string) => {
    const database = new DatabaseSync(path);
    const { changes } = database
      .prepare(sql.replace('KEY', '(SELECT key FROM session WHERE id = ?)'))
      .run(id);
    assert.ok(changes > 0);
    database.close();
  };
  const damage = (sql: string, told: RegExp) => async (id: string) => {
    await change(sql)(id);
    return told;
  };
  return {
    name: 'SQLite',
    async start() {
      path = join(mkdtempSync(join(tmpdir(), 'sessions-')), 'sessions.db');
    },
    async stop() {
      rmSync(join(path, '..'), { recursive: true });
    },
    open: async (options) => openSqliteStore(path, options),
    damages: {
      'the reset removed': damage(
        'DELETE FROM entry WHERE step = -1 AND session = KEY',
        /its reset is missing/,
      ),
      'a step removed': damage('DELETE FROM entry WHERE step = 1 AND session = KEY', /step 1 is missing/),
      'the last steps removed': damage(
        'DELETE FROM entry WHERE step > 1 AND session = KEY',
        /last 2 entries are missing/,
      ),
      'all entries removed': damage('DELETE FROM entry WHERE session = KEY', /its reset is missing/),
      'an action changed': damage(
        `UPDATE entry SET text = '{"amount":9}' WHERE step = 2 AND session = KEY`,
        /step 2 was changed/,
      ),
      'the reset changed': damage(
        `UPDATE entry SET text = '{"seed":9}' WHERE step = -1 AND session = KEY`,
        /its reset was changed/,
      ),
    },
  };
}

function redis(): Kind {
  let server: RedisProcess;
  let client: Redis;
  const damage = (change: (session: string) => Promise<unknown>, told: RegExp) => async (id: string) => {
    assert.ok(await change(`openenv:session:${id}`));
    return told;
  };
  return {
    name: 'Redis',
    async start() {
      server = await startRedis();
      client = new Redis(server.url);
    },
    async stop() {
      client.disconnect();
      await server.stop();
    },
    open: (options) => openRedisStore(server.url, options),
    damages: {
      'the key of the reset gone': damage((key) => client.del(key), /its reset is missing/),
      'the key of the actions gone': damage(
        (key) => client.del(`${key}:actions`),
        /4 of its 4 steps are missing/,
      ),
      'a step removed': damage((key) => client.lpop(`${key}:actions`), /1 of its 4 steps are missing/),
      'the last step removed': damage((key) => client.rpop(`${key}:actions`), /1 of its 4 steps are missing/),
      'an action changed': damage(
        (key) => client.lset(`${key}:actions`, 2, '{"amount":9}'),
        /its entries were changed/,
      ),
      'random bytes': damage(
        (key) => client.set(`${key}:actions`, Buffer.from([7, 255, 0])),
        /its keys hold no session/,
      ),
      'fields of the reset gone': damage(
        (key) => client.hdel(key, 'steps', 'reset'),
        /it has 4 steps, not any/,
      ),
    },
  };
}

/** Fails unless each way to ask for a session says that it was here. */
async function assertGone(url: string, session_id: string): Promise<void> {
  const action = { amount: 1 };
  for (const answer of [
    await getJson(`${url}/state?session_id=${session_id}`),
    await postJson(`${url}/step`, { session_id, action }),
    await postJson(`${url}/reset`, { session_id }),
  ]) {
    assert.deepEqual([answer.status, answer.body.code], [410, 'SESSION_DELETED']);
    assert.match(
      answer.body.detail,
      /, opened \d{4}-\d\d-\d\d at .* UTC, is not kept here: it was .*evicted/,
    );
  }
  const socket = await openRawSocket(url, `/ws?session_id=${session_id}`);
  const { code, reason } = (await socket.next()).data;
  assert.deepEqual([code, reason], ['SESSION_ERROR', 'SESSION_DELETED']);
  await socket.close();
  const params = { session_id };
  const call = await postJson(`${url}/mcp`, {
    jsonrpc: '2.0',
    id: 1,
    method: 'openenv/session/close',
    params,
  });
  assert.match(call.body.error.message, /is not kept here/);
  // A digit more or less, and it was never an id of ours.
  const other = session_id.replace(/.$/, (digit) => ((Number.parseInt(digit, 16) + 1) % 16).toString(16));
  const unknown = await getJson(`${url}/state?session_id=${other}`);
  assert.deepEqual([unknown.status, unknown.body.code], [404, 'UNKNOWN_SESSION']);
}

for (const kind of [sqlite(), redis()]) {
  describe(`sessions kept in ${kind.name}`, () => {
    before(() => kind.start());
    after(() => kind.stop());

    async function serve(t: TestContext, options?: Options) {
      return startServer(t, counterEnvironment, {
        store: await kind.open(options),
        metrics: prometheusMetrics(),
      });
    }

    /** A session with four steps that has left the memory of its server. */
    async function rested(t: TestContext): Promise<string> {
      const { url, server } = await serve(t);
      const { body } = await postJson(`${url}/reset`, { seed: 0, target: 1000 });
      for (let step = 0; step < 4; step++) {
        await postJson(`${url}/step`, { session_id: body.session_id, action: { amount: 1 } });
      }
      await server.sessions.release(body.session_id);
      return body.session_id;
    }

    for (const [name, damage] of Object.entries(kind.damages)) {
      it(`are told to be damaged, not shorter: ${name}`, async (t) => {
        const sessionId = await rested(t);
        const told = await damage(sessionId);
        const { logger, entries } = collectingLogger();
        const { url } = await serve(t, { logger });
        const answer = await getJson(`${url}/state?session_id=${sessionId}`);
        assert.deepEqual(
          [answer.status, answer.body.code],
          [409, 'SESSION_DAMAGED'],
          JSON.stringify(answer.body),
        );
        assert.match(answer.body.detail, told);
        const socket = await openRawSocket(url, `/ws?session_id=${sessionId}`);
        const refusal = (await socket.next()).data;
        assert.deepEqual([refusal.code, refusal.reason], ['SESSION_ERROR', 'SESSION_DAMAGED']);
        await socket.close();
        assert.ok(
          entries.some(({ level, message }) => level === 'error' && message === 'a session is damaged'),
        );
        assert.match(await (await fetch(`${url}/metrics`)).text(), /openenv_store_damaged_sessions_total 2/);
      });
    }

    it('can be reset once they are damaged, and go on from there', async (t) => {
      const session_id = await rested(t);
      await kind.damages['a step removed'](session_id);
      const { url } = await serve(t);
      assert.equal((await postJson(`${url}/reset`, { session_id, seed: 5, target: 1000 })).status, 200);
      await postJson(`${url}/step`, { session_id, action: { amount: 1 } });
      const other = await serve(t);
      assert.equal((await getJson(`${other.url}/state?session_id=${session_id}`)).body.total, 6);
    });

    it('of one client have a quota; those that rest give way, and nobody else’s do', async (t) => {
      const { logger } = collectingLogger();
      const limits = { maxClientBytes: 20_000, logger };
      const store = await kind.open({ ...limits, restMs: 60_000 });
      t.after(() => store.close());
      const reset = (from: SessionStore, id: string, client: string) =>
        from.open(id, ENVIRONMENT, client).reset('e', { note: 'x'.repeat(4000) });
      await reset(store, 'victim', 'ada');
      let kept = 0;
      const error = await (async () => {
        for (; kept < 100; kept++) await reset(store, `spam-${kept}`, 'eve');
      })().catch((reason) => reason);
      assert.equal(error.code, 'STORE_QUOTA');
      assert.equal(kept, 4);
      assert.equal(store.condition!().refusedWrites, 1);
      assert.equal(store.condition!().problem, null);
      await reset(store, 'another', 'ada');

      // Whenever a session was used last, it rests.
      const later = await kind.open({ ...limits, restMs: -60_000 });
      t.after(() => later.close());
      await reset(later, 'spam-last', 'eve');
      assert.equal(await later.take('spam-0'), undefined);
      assert.notEqual(await later.take('spam-3'), undefined);
      assert.notEqual(await later.take('victim'), undefined);
    });

    it('that have expired answer that they are gone, and not as ones that never were', async (t) => {
      const ended = await serve(t, { retentionMs: -60_000 });
      const session_id = (await postJson(`${ended.url}/reset`, { seed: 0 })).body.session_id;
      await ended.server.sessions.release(session_id);
      const { url } = await serve(t, { retentionMs: -60_000 });
      await assertGone(url, session_id);
    });

    it('that were deleted while they were open say so', async (t) => {
      const store = await kind.open({ maxClientBytes: 10_000, restMs: -60_000 });
      t.after(() => store.close());
      const journal = store.open('resting', ENVIRONMENT, 'bob');
      await journal.reset('e', { note: 'x'.repeat(4000) });
      for (const id of ['more', 'and more']) {
        await store.open(id, ENVIRONMENT, 'bob').reset('e', { note: 'x'.repeat(4000) });
      }
      await assert.rejects(journal.step(0, { amount: 1 }), { code: 'SESSION_DELETED' });
      assert.equal(await journal.isOwned(), false);
    });
  });
}

describe('Redis', () => {
  it('is warned of when it may evict sessions', async (t) => {
    const server = await startRedis();
    t.after(() => server.stop());
    const client = new Redis(server.url);
    t.after(() => client.disconnect());
    const warnings = async () => {
      const { logger, entries } = collectingLogger();
      await (await openRedisStore(server.url, { logger })).close();
      return entries.map(({ level, message, fields }) => [level, message, fields.policy]);
    };
    assert.deepEqual(await warnings(), []);
    await client.config('SET', 'maxmemory-policy', 'allkeys-lru');
    assert.deepEqual(await warnings(), [
      ['warn', 'Redis may evict sessions: set its maxmemory-policy to noeviction', 'allkeys-lru'],
    ]);
  });

  it('that has evicted a session answers that it is gone', async (t) => {
    const server = await startRedis();
    t.after(() => server.stop());
    const client = new Redis(server.url);
    t.after(() => client.disconnect());
    const { url, server: playing } = await startServer(t, counterEnvironment, {
      store: await openRedisStore(server.url),
    });
    const { session_id } = (await postJson(`${url}/reset`, { seed: 0 })).body;
    await playing.sessions.release(session_id);
    await client.config('SET', 'maxmemory-policy', 'allkeys-random');
    await client.config('SET', 'maxmemory', '4mb');
    for (let key = 0; await client.exists(`openenv:session:${session_id}`); key++) {
      await client.set(`other ${key}`, 'x'.repeat(100_000));
    }
    await assertGone(url, session_id);
  });
});

test('sessions that were kept in memory answer that they are gone, also without an id', async (t) => {
  const { url, server } = await startServer(t, counterEnvironment);
  const { session_id } = (await postJson(`${url}/reset`, { seed: 0 })).body;
  await server.sessions.release(session_id);
  await assertGone(url, session_id);
  const step = async () => (await postJson(`${url}/step`, { action: { amount: 1 } })).body.code;
  assert.deepEqual([await step(), await step()], ['SESSION_DELETED', 'NOT_RESET']);
  assert.equal((await postJson(`${url}/reset`, { seed: 0 })).status, 200);
});

test('a failover of Sentinels loses no step that was answered', async (t) => {
  const primary = await startRedis();
  const replica = await startRedis('--replicaof', '127.0.0.1', new URL(primary.url).port);
  const sentinel = await startSentinel(primary);
  const { hostname: host, port } = new URL(sentinel.url);
  const admin = new Redis(replica.url);
  const watch = new Redis(sentinel.url);
  t.after(async () => {
    admin.disconnect();
    watch.disconnect();
    for (const server of [sentinel, replica, primary]) await server.stop();
  });
  while (!(await admin.info('replication')).includes('master_link_status:up')) await sleep(20);
  while (((await watch.call('SENTINEL', 'replicas', 'sessions')) as unknown[]).length === 0) await sleep(20);
  const options = { sentinels: [{ host, port: Number(port) }], name: 'sessions' };
  const store = await openRedisStore(options, { timeoutMs: 20_000 });
  t.after(() => store.close());
  const ids = Array.from({ length: 20 }, (_, i) => `session-${i}`);
  const answered = new Map<string, number>();
  let isOver = false;
  const playing = ids.map(async (id) => {
    const journal = store.open(id, ENVIRONMENT);
    await journal.reset('e', { seed: 1 });
    for (let step = 0; !isOver; step++) {
      await journal.step(step, { amount: step });
      answered.set(id, step + 1);
    }
  });
  while ((answered.get('session-0') ?? 0) < 20) await sleep(5);
  process.kill(primary.pid, 'SIGKILL');
  while (!(await admin.info('replication')).includes('role:master')) await sleep(20);
  const before = answered.get('session-0')!;
  while (answered.get('session-0')! < before + 3) await sleep(20);
  assert.match(store.condition!().problem!, /no replica of Redis has the last entries/);
  isOver = true;
  await Promise.all(playing);
  for (const id of ids) {
    const { damage, actions } = (await store.take(id))!;
    assert.deepEqual([damage, actions.length], [undefined, answered.get(id)]);
  }
});

test('Sentinels that do not answer, or do not know the name, are told', async (t) => {
  const away = openRedisStore({ sentinels: [{ host: '127.0.0.1', port: 1 }], name: 'sessions' });
  await assert.rejects(away, {
    code: 'STORE_ERROR',
    message: /at sessions of 127\.0\.0\.1:1: .*[sS]entinel/,
  });
  const primary = await startRedis();
  const sentinel = await startSentinel(primary);
  t.after(async () => {
    for (const server of [sentinel, primary]) await server.stop();
  });
  const port = Number(new URL(sentinel.url).port);
  const misnamed = openRedisStore({ sentinels: [{ host: '127.0.0.1', port }], name: 'other' });
  await assert.rejects(misnamed, { code: 'STORE_ERROR', message: /at other of 127\.0\.0\.1:\d+: ./ });
});

/** A proxy before Redis whose connections can fall silent: what they carry is swallowed, and they stay open. */
async function silentProxy(t: TestContext, target: string) {
  const sockets = new Set<Socket>();
  const silent = new Map<Socket, 'answers' | 'everything'>();
  const state = {
    url: '',
    connections: 0,
    /** New connections are silent too. */
    isAlwaysSilent: false,
    /** Silences the connections that are open. */
    swallow: (what: 'answers' | 'everything') => {
      for (const socket of sockets) silent.set(socket, what);
    },
    cut: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
  const server = createServer((client) => {
    state.connections++;
    sockets.add(client);
    if (state.isAlwaysSilent) silent.set(client, 'everything');
    const redis = connect(Number(new URL(target).port), '127.0.0.1');
    client.on('data', (bytes) => silent.get(client) !== 'everything' && redis.write(bytes));
    redis.on('data', (bytes) => !silent.has(client) && client.write(bytes));
    for (const socket of [client, redis]) socket.on('error', () => {});
    client.on('close', () => {
      sockets.delete(client);
      redis.destroy();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    state.cut();
    server.close();
  });
  state.url = `redis://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return state;
}

test('a store without progress is told, and its failures are logged once in ten seconds', (t) => {
  let now = 1000;
  t.mock.method(performance, 'now', () => now);
  const { logger, entries } = collectingLogger();
  const monitor = new StoreMonitor(logger);
  monitor.began();
  assert.equal(monitor.condition.problem, null);
  now += 2500;
  assert.match(monitor.condition.problem!, /1 entries of sessions have waited 2\.5 s to be written/);
  for (let failure = 0; failure < 100; failure++) {
    monitor.began();
    monitor.failed(1, 'the disk is full');
  }
  monitor.failed(1, 'the disk is full');
  assert.match(monitor.condition.problem!, /could not be written 0\.0 s ago: the disk is full/);
  assert.equal(monitor.condition.failedWrites, 101);
  assert.equal(entries.length, 1);
  now += 10_000;
  monitor.began();
  monitor.failed(1, 'the disk is full');
  assert.equal(entries.length, 2);
  monitor.readAgain();
  assert.notEqual(monitor.condition.problem, null);
  monitor.began();
  monitor.written(1);
  assert.equal(monitor.condition.problem, null);
  assert.equal(entries.at(-1)?.message, 'sessions are written again');
});

describe('sessions in Redis', () => {
  let redis: RedisProcess;
  let here: SessionStore;
  let there: SessionStore;
  before(async () => {
    redis = await startRedis();
    [here, there] = await Promise.all([openRedisStore(redis.url), openRedisStore(redis.url)]);
  });
  after(async () => {
    await Promise.all([here.close(), there.close()]);
    await redis.stop();
  });

  function clientOf(t: TestContext): Redis {
    const client = new Redis(redis.url);
    t.after(() => client.disconnect());
    return client;
  }

  it('are taken over by another server, with all that was played', async () => {
    const journal = here.open('a', ENVIRONMENT);
    await journal.reset('episode-1', { seed: 7 });
    await journal.step(0, { value: 1 });
    await journal.step(1, { value: 2 });
    const taken = await there.take('a');
    assert.deepEqual(
      { ...taken, journal: undefined },
      {
        environment: ENVIRONMENT,
        client: '',
        episodeId: 'episode-1',
        reset: { seed: 7 },
        actions: [{ value: 1 }, { value: 2 }],
        journal: undefined,
      },
    );
    assert.equal(await journal.isOwned(), false);
    await assert.rejects(journal.step(2, { value: 3 }), { code: 'SESSION_TAKEN' });
    await assert.rejects(journal.reset('episode-2', {}), { code: 'SESSION_TAKEN' });
    await taken!.journal.step(2, { value: 4 });
    assert.deepEqual((await here.take('a'))!.actions, [{ value: 1 }, { value: 2 }, { value: 4 }]);
  });

  it('of format 2, before sessions told their format, go on', async (t) => {
    const client = clientOf(t);
    await here.open('untold', ENVIRONMENT, 'ada').reset('episode-1', { seed: 1 });
    assert.equal(await client.hget('openenv:session:untold', 'format'), '2');
    await client.hdel('openenv:session:untold', 'format');
    await (await there.take('untold'))!.journal.step(0, { amount: 1 });
    assert.deepEqual((await here.take('untold'))!.actions, [{ amount: 1 }]);
  });

  it('with a long reset are kept compressed, in a format that older servers refuse', async (t) => {
    const client = clientOf(t);
    const column = Array.from({ length: 19_000 }, (_, i) => i / 60);
    await here.open('long', ENVIRONMENT, 'ada').reset('episode-1', { column });
    const kept = await client.hgetall('openenv:session:long');
    assert.equal(kept.format, '3');
    assert.ok(kept.reset!.length < JSON.stringify(column).length / 2);
    const { reset, damage } = (await there.take('long'))!;
    assert.deepEqual([reset, damage], [{ column }, undefined]);
  });

  it('of a later format are refused with a sentence, and stay as they are', async (t) => {
    const client = clientOf(t);
    const later = { format: '4', owner: 'a later server', body: 'whatever' };
    await client.hset('openenv:session:later', later);
    await assert.rejects(here.take('later'), {
      code: 'STORE_ERROR',
      message: /^The session has format 4, this version reads formats up to 3\. Use the version of servegym/,
    });
    await assert.rejects(here.open('later', ENVIRONMENT).reset('e', {}), { code: 'SESSION_TAKEN' });
    assert.deepEqual(await client.hgetall('openenv:session:later'), later);
  });

  it('begin anew with a reset', async () => {
    const journal = here.open('b', ENVIRONMENT);
    await journal.reset('episode-1', {});
    await journal.step(0, 'left');
    await journal.reset('episode-2', { task_id: 'hard' });
    const { actions, episodeId, reset } = (await there.take('b'))!;
    assert.deepEqual([actions, episodeId, reset], [[], 'episode-2', { task_id: 'hard' }]);
  });

  it('go to one of those who ask for them at once', async () => {
    await here.open('c', ENVIRONMENT).reset('episode-1', {});
    const taken = await Promise.all(Array.from({ length: 10 }, (_, i) => (i % 2 ? here : there).take('c')));
    const owned = await Promise.all(taken.map((session) => session!.journal.isOwned()));
    assert.equal(new Set(owned.filter((_, i) => i % 2 === 0)).size, 1);
    assert.equal(owned.filter(Boolean).length, 5);
  });

  it('are forgotten when they are removed, by their owner only', async () => {
    await here.open('d', ENVIRONMENT).reset('episode-1', {});
    await there.remove('d');
    assert.notEqual(await here.take('d'), undefined);
    await here.remove('d');
    assert.equal(await there.take('d'), undefined);
    assert.equal(await there.take('never'), undefined);
  });

  it('survive a connection that dies without a word, and a step whose answer was lost is saved once', async (t) => {
    const proxy = await silentProxy(t, redis.url);
    const store = await openRedisStore(proxy.url, { deadAfterMs: 300, probeIntervalMs: 100 });
    t.after(() => store.close());
    const journal = store.open('silent', ENVIRONMENT);
    await journal.reset('episode-1', {});
    proxy.swallow('answers');
    await journal.step(0, { value: 1 });
    proxy.swallow('everything');
    await journal.step(1, { value: 2 });
    assert.ok(proxy.connections >= 3);
    assert.equal(store.condition!().failedWrites, 0);
    assert.deepEqual((await here.take('silent'))!.actions, [{ value: 1 }, { value: 2 }]);
  });

  it('say that it is not known what was saved when Redis stays silent, and reads are told of', async (t) => {
    const proxy = await silentProxy(t, redis.url);
    const store = await openRedisStore(proxy.url, { timeoutMs: 500, deadAfterMs: 200, probeIntervalMs: 50 });
    t.after(() => store.close());
    const journal = store.open('unknown', ENVIRONMENT);
    await journal.reset('episode-1', {});
    proxy.isAlwaysSilent = true;
    proxy.swallow('everything');
    while (store.condition!().problem === null) await sleep(20);
    assert.equal(store.condition!().failedWrites, 0, 'a read has found it');
    await assert.rejects(journal.step(0, {}), { code: 'STORE_ERROR', message: /It is not known whether/ });
    await assert.rejects(store.take('unknown'), { code: 'STORE_ERROR' });
    assert.match(store.condition!().problem!, /Redis: /);
    assert.equal(store.condition!().failedWrites, 1);
    proxy.isAlwaysSilent = false;
    proxy.cut();
    while (store.condition!().problem !== null) await sleep(20);
  });

  it('refuse a step that does not follow the last one', async () => {
    const journal = here.open('e', ENVIRONMENT);
    await journal.reset('episode-1', {});
    await assert.rejects(journal.step(3, {}), { code: 'SESSION_DAMAGED', message: /missing/ });
  });

  it('say when Redis is not there, at the start and later', async () => {
    await assert.rejects(openRedisStore('redis://127.0.0.1:1', { timeoutMs: 1500 }), {
      code: 'STORE_ERROR',
      message: /Could not open the sessions in Redis at redis:\/\/127\.0\.0\.1:1: .*ECONNREFUSED/,
    });
    const lost = await startRedis();
    const store = await openRedisStore(lost.url, { timeoutMs: 1500 });
    const journal = store.open('f', ENVIRONMENT);
    await lost.stop();
    await assert.rejects(journal.reset('episode-1', {}), {
      code: 'STORE_ERROR',
      message: /not known whether the session could be saved: Redis/,
    });
    await store.close();
  });
});
