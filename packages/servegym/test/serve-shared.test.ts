import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type RedisProcess, startRedis, startSentinel } from '../../../maintenance/test-servers/redis.ts';
import { type ServeProcess, startServeWith } from '../../../maintenance/test-servers/servegym.ts';
import { redisConnection } from '../src/server/session-storage.ts';
import { runCommand } from './in-process.ts';

describe('two servers that share their sessions in Redis', () => {
  let redis: RedisProcess;
  let servers: ServeProcess[];
  before(async () => {
    redis = await startRedis();
    servers = await Promise.all([1, 2].map(() => startServeWith({ SERVEGYM_STORE: redis.url })));
  });
  after(async () => {
    await Promise.all(servers.map((server) => server.stop()));
    await redis.stop();
  });

  async function post(server: ServeProcess, path: string, body: unknown) {
    const answer = await fetch(`${server.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    assert.equal(answer.status, 200, await answer.clone().text());
    return (await answer.json()) as {
      session_id: string;
      observation: Record<string, unknown>;
      reward: number;
    };
  }

  it('play one episode in turns, the same as one server alone', async () => {
    const action = {
      ...{ batch_cap: 64, kv_budget_fraction: 0.5, speculation_depth: 2, quantization_tier: 'INT8' },
      ...{ prefill_decode_split: false, priority_routing: false },
    };
    const play = async (serverOf: (step: number) => ServeProcess) => {
      const { session_id } = await post(serverOf(0), '/reset', { task_id: 'bursty_workload', seed: 5 });
      const seen = [];
      for (let step = 0; step < 6; step += 1) {
        const { observation, reward } = await post(serverOf(step), '/step', { session_id, action });
        seen.push([reward, observation]);
      }
      return seen;
    };
    const inTurns = await play((step) => servers[step % 2]);
    assert.deepEqual(inTurns, await play(() => servers[0]));
  });

  it('find Redis by its Sentinels', async (t) => {
    const sentinel = await startSentinel(redis);
    const { port } = new URL(sentinel.url);
    const address = `redis+sentinel://127.0.0.1:1,127.0.0.1:${port}/sessions`;
    const server = await startServeWith({ SERVEGYM_STORE: address });
    t.after(async () => {
      await server.stop();
      await sentinel.stop();
    });
    const { session_id } = await post(servers[0], '/reset', { task_id: 'bursty_workload', seed: 5 });
    const answer = await fetch(`${server.url}/state?session_id=${session_id}`);
    assert.equal(((await answer.json()) as { step_count: number }).step_count, 0);
  });

  it('find it with a password of the Sentinels and one of the servers, and say neither', async (t) => {
    const guarded = await startRedis('--requirepass', 'of-redis');
    const sentinel = await startSentinel(guarded, ['of-redis', 'of-sentinel']);
    t.after(async () => {
      await sentinel.stop();
      await guarded.stop();
    });
    const { port } = new URL(sentinel.url);
    const store = (own: string) =>
      `redis+sentinel://:of-redis@127.0.0.1:${port}/sessions?sentinel_password=${own}`;
    const refused = await runCommand('serve', '--port', '0', '--store', store('of-nobody'));
    assert.deepEqual([refused.code, /of-(redis|nobody)/.test(refused.stderr)], [2, false]);
    assert.match(refused.stderr, /Sessions cannot be kept in Redis: /);
    const server = await startServeWith({ SERVEGYM_STORE: store('of-sentinel') });
    const { session_id } = await post(server, '/reset', { task_id: 'bursty_workload', seed: 5 });
    assert.equal(typeof session_id, 'string');
    const { stdout, stderr } = await server.stop();
    assert.doesNotMatch(stdout + stderr, /of-(redis|sentinel)/);
  });

  it('speak TLS to Sentinels and servers where the address says so', () => {
    assert.deepEqual(redisConnection('rediss+sentinel://ada:secret@a:1,b/sessions/2?sentinel_user=eve'), {
      sentinels: [
        { host: 'a', port: 1 },
        { host: 'b', port: 26379 },
      ],
      ...{ name: 'sessions', db: 2, username: 'ada', password: 'secret', sentinelUsername: 'eve' },
      ...{ tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true },
    });
  });

  it('refuse an address of Sentinels without a name', async () => {
    for (const address of ['redis+sentinel://here:26379', 'redis+sentinel://:secret@/name']) {
      const { code, stderr } = await runCommand('serve', '--port', '0', '--store', address);
      assert.deepEqual([code, stderr.includes('secret')], [2, false]);
      assert.match(stderr, /Expected redis\+sentinel:\/\/host:port,host:port\/name, with the name/);
    }
  });

  it('refuse to start where there is no Redis', async () => {
    const { code, stderr } = await runCommand('serve', '--port', '0', '--store', 'redis://127.0.0.1:1');
    assert.equal(code, 2);
    assert.match(stderr, /Sessions cannot be kept in Redis: .*ECONNREFUSED/);
  });
});
