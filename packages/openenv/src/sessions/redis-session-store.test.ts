import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startRedis } from '../../../../maintenance/test-servers/redis.ts';
import type { ServerProcess } from '../../../../maintenance/test-servers/server-process.ts';
import { openRedisStore } from './redis-session-store.ts';
import type { SessionStore } from './session-store.ts';

const ENVIRONMENT = { id: 'counter', version: '1.0.0' };

describe('sessions in Redis', () => {
  let redis: ServerProcess;
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
      message: /could not be saved: Redis/,
    });
    await store.close();
  });
});
