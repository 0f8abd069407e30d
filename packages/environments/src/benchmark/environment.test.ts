import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createServer, EnvironmentError } from '@servegym/openenv';
import { connect } from '@servegym/openenv/client';
import {
  benchmarkActionSchema,
  benchmarkEnvironment,
  benchmarkObservationSchema,
  benchmarkStateSchema,
  LONGEST_WAIT_S,
} from './environment.ts';

describe('the benchmark environment, without a server', () => {
  it('resets, steps, keeps state and says who it is', async () => {
    const definition = benchmarkEnvironment({ hostUrl: () => 'http://here:8000' });
    const environment = definition.create();
    const first = await environment.reset({});
    assert.deepEqual([first.reward, first.done], [null, false]);
    assert.deepEqual(
      [first.observation.host_url, first.observation.pid, first.observation.waited_seconds],
      ['http://here:8000', process.pid, 0],
    );
    assert.match(first.observation.session_hash, /^[0-9a-f]{16}$/);

    const { observation, reward, done } = await environment.step({ wait_seconds: 0.02 });
    benchmarkObservationSchema.parse(observation);
    assert.equal(observation.session_hash, first.observation.session_hash);
    assert.ok(observation.waited_seconds >= 0.02, `waited ${observation.waited_seconds} s`);
    assert.ok(observation.timestamp >= first.observation.timestamp);
    assert.equal(reward, 1 / 1.02);
    assert.equal(done, false);

    const state = benchmarkStateSchema.parse(environment.state());
    assert.deepEqual([state.resets, state.total_waited_seconds], [1, observation.waited_seconds]);
    await environment.reset({});
    assert.deepEqual([environment.state().resets, environment.state().total_waited_seconds], [2, 0]);
  });

  it('never answers before its wait is over', async () => {
    const definition = benchmarkEnvironment();
    const waits = Array.from({ length: 400 }, async (_, i) => {
      const environment = definition.create();
      await environment.reset({});
      const seconds = 0.05 + (i % 40) * 1e-4;
      const startedAt = performance.now();
      const { observation } = await environment.step({ wait_seconds: seconds });
      const elapsed = (performance.now() - startedAt) / 1000;
      return Math.min(elapsed, observation.waited_seconds) - seconds;
    });
    const least = Math.min(...(await Promise.all(waits)));
    assert.ok(least >= 0, `${-least} s early`);
  });

  it('answers at once when it is told no wait', () => {
    const environment = benchmarkEnvironment().create();
    environment.reset({});
    const result = environment.step(benchmarkActionSchema.parse({}));
    assert.ok(!(result instanceof Promise));
    assert.deepEqual([result.reward, result.observation.waited_seconds], [1, 0]);
  });

  it('gives each session a hash of its own', () => {
    const definition = benchmarkEnvironment();
    const hashes = Array.from({ length: 1000 }, () => definition.create().state().session_hash);
    assert.equal(new Set(hashes).size, 1000);
  });

  it('waits no longer once it is closed', async () => {
    const environment = benchmarkEnvironment().create();
    environment.reset({});
    const step = environment.step({ wait_seconds: LONGEST_WAIT_S });
    await environment.close?.();
    await assert.rejects(async () => step, { name: 'AbortError' });
    assert.equal(environment.state().total_waited_seconds, 0);
  });

  it('refuses a step before the first reset, with a code', () => {
    assert.throws(
      () => benchmarkEnvironment().create().step({ wait_seconds: 0 }),
      (error) => error instanceof EnvironmentError && error.code === 'NOT_RESET',
    );
  });

  it('takes waits from 0 to the longest one, and nothing else', () => {
    for (const wait_seconds of [0, 0.5, LONGEST_WAIT_S]) {
      assert.deepEqual(benchmarkActionSchema.parse({ wait_seconds }), { wait_seconds });
    }
    for (const wrong of [-0.001, LONGEST_WAIT_S + 1, Number.NaN, Number.POSITIVE_INFINITY, '1', null]) {
      assert.equal(benchmarkActionSchema.safeParse({ wait_seconds: wrong }).success, false, String(wrong));
    }
    assert.equal(benchmarkActionSchema.safeParse({ wait_second: 1 }).success, false);
  });
});

describe('the benchmark environment, served', () => {
  it('lets no session wait for another', async (t) => {
    let url = '';
    const server = createServer(benchmarkEnvironment({ hostUrl: () => url }));
    const listening = await server.listen({ port: 0, host: '127.0.0.1' });
    t.after(() => listening.close());
    url = listening.url;
    const [slow, quick] = await Promise.all([connect(url), connect(url)]);
    await Promise.all([slow.reset(), quick.reset()]);
    const answered: string[] = [];
    const late = slow.step({ wait_seconds: 1 }).then(({ observation }) => {
      answered.push('slow');
      return observation;
    });
    for (let step = 0; step < 3; step++) {
      const { observation } = await quick.step({ wait_seconds: 0.001 });
      assert.equal(observation.host_url, url);
      answered.push('quick');
    }
    const { session_hash } = await late;
    assert.deepEqual(answered, ['quick', 'quick', 'quick', 'slow']);
    assert.notEqual(session_hash, (await quick.step({})).observation.session_hash);
    await Promise.all([slow.close(), quick.close()]);
  });

  it('answers a wait that it cannot take with what is wrong', async (t) => {
    const listening = await createServer(benchmarkEnvironment()).listen({ port: 0, host: '127.0.0.1' });
    t.after(() => listening.close());
    const client = await connect(listening.url);
    await client.reset();
    await assert.rejects(client.step({ wait_seconds: LONGEST_WAIT_S + 1 }), {
      code: 'VALIDATION_ERROR',
      message: /wait_seconds: .*less than or equal to 60/,
    });
    await assert.rejects(client.step({ wait: 1 }), { code: 'VALIDATION_ERROR', message: /wait: Extra/ });
    assert.equal((await client.step({})).reward, 1);
    await client.close();
  });

  it('keeps no session in a store', async (t) => {
    const opened: string[] = [];
    const server = createServer(benchmarkEnvironment(), {
      store: {
        open: (id) => {
          opened.push(id);
          throw new Error('Expected the session not to be kept');
        },
        take: async () => undefined,
        remove: async () => {},
        close: async () => {},
      },
    });
    t.after(() => server.close());
    const session = server.sessions.open();
    await session.reset({ seed: 1 });
    await session.step({ wait_seconds: 0 });
    assert.deepEqual(session.record?.actions, []);
    assert.deepEqual(opened, []);
  });
});
