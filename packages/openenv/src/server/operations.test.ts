import assert from 'node:assert/strict';
import { describe, it, type TestContext, test } from 'node:test';
import { z } from 'zod';
import { connect } from '../client/connect.ts';
import { counterEnvironment } from '../fixtures/counter-environment.ts';
import {
  collectingLogger,
  getJson,
  type LooseJson,
  openRawSocket,
  postJson,
  startServer,
} from '../fixtures/start-server.ts';
import { defineEnvironment } from '../protocol/definition.ts';
import { maskUrls } from '../protocol/mask-urls.ts';
import { createServer } from './create-server.ts';
import { mountEpisodeRoutes } from './episode-routes.ts';
import { drainOnSignal } from './listen.ts';
import { prometheusMetrics } from './prometheus-metrics.ts';

const other = { ...counterEnvironment, id: 'other', name: 'other' };
const third = { ...counterEnvironment, id: 'third', name: 'third' };

/** A port with the counter at its root, and others below it. */
async function startThree(t: TestContext) {
  const root = createServer(counterEnvironment);
  const below = createServer(other);
  root.mount('/other', below);
  root.mount('/third', createServer(third));
  const listening = await root.listen({ port: 0, host: '127.0.0.1' });
  t.after(() => listening.close());
  return { root, below, listening, url: listening.url };
}

const get = async (url: string): Promise<LooseJson> => (await fetch(url)).json();

describe('environments on one port', () => {
  it('answer below their paths, each for itself', async (t) => {
    const { url } = await startThree(t);
    assert.equal((await get(`${url}/metadata`)).name, counterEnvironment.name);
    assert.equal((await get(`${url}/other/metadata?x=1`)).name, 'other');
    const reset = await fetch(`${url}/other/reset`, { method: 'POST' });
    const { session_id } = (await reset.json()) as { session_id: string };
    assert.equal((await fetch(`${url}/other/state?session_id=${session_id}`)).status, 200);
    assert.equal((await fetch(`${url}/state?session_id=${session_id}`)).status, 410);
    assert.equal((await fetch(`${url}/nobody/metadata`)).status, 404);
    assert.equal((await fetch(`${url}/otherwise/metadata`)).status, 404);
    assert.equal((await get(`${url}/health`)).active_sessions, 0);
    assert.equal((await get(`${url}/other/health`)).active_sessions, 1);
  });

  it('are played over WebSockets below their paths', async (t) => {
    const { root, below, url } = await startThree(t);
    const client = await connect(`${url}/other`);
    await client.reset({ seed: 1 });
    assert.deepEqual([root.sessions.size, below.sessions.size], [0, 1]);
    await client.close();
    await assert.rejects(connect(`${url}/nobody`));
  });

  it('are listed with paths that hold behind a proxy', async (t) => {
    const { url } = await startThree(t);
    const paths = async (root: string) =>
      (await get(`${root}environments`)).environments.map(({ id, path }: { id: string; path: string }) => [
        id,
        new URL(path, root).href,
      ]);
    const expected = [
      [counterEnvironment.id, `${url}/`],
      ['other', `${url}/other/`],
      ['third', `${url}/third/`],
    ];
    for (const root of [`${url}/`, `${url}/other/`, `${url}/third/`])
      assert.deepEqual(await paths(root), expected);
  });

  it('lead from their path to the slash behind it', async (t) => {
    const { url } = await startThree(t);
    for (const [asked, location] of [
      ['/other', 'other/'],
      ['/other?a=1', 'other/?a=1'],
    ]) {
      const answer = await fetch(url + asked, { redirect: 'manual' });
      assert.deepEqual([answer.status, answer.headers.get('location')], [307, location]);
    }
  });

  it('close and drain together', async (t) => {
    const { below, listening, url } = await startThree(t);
    const client = await connect(`${url}/other`);
    await client.reset();
    const drained = listening.drain({ graceMs: 60_000 });
    assert.throws(() => below.sessions.open(), /drain|shutting/i);
    await client.close();
    await drained;
    assert.equal(below.sessions.size, 0);
    await assert.rejects(fetch(`${url}/other/health`));
  });

  it('need paths and ports of their own', async (t) => {
    const { root, below } = await startThree(t);
    const fresh = createServer(third);
    t.after(() => fresh.close());
    for (const path of ['/other', 'name', '/', '/a/b', '/a?b', '']) {
      assert.throws(() => root.mount(path, fresh), TypeError, path);
    }
    assert.throws(() => fresh.mount('/again', below), TypeError);
    assert.throws(() => fresh.mount('/self', fresh), TypeError);
    assert.throws(() => fresh.mount('/root', root), TypeError);
  });
});

/** An environment whose steps end when the test says so. */
function gatedEnvironment() {
  let openGate = () => {};
  const gate = new Promise<void>((resolve) => {
    openGate = resolve;
  });
  let stepStarted = () => {};
  const started = new Promise<void>((resolve) => {
    stepStarted = resolve;
  });
  const definition = defineEnvironment({
    id: 'gated',
    version: '1',
    name: 'Gated',
    description: 'Waits.',
    action: z.strictObject({}).meta({ title: 'GatedAction' }),
    observation: z.object({ ok: z.boolean() }),
    state: z.object({}),
    create: () => ({
      reset: () => ({ observation: { ok: false }, reward: null, done: false }),
      async step() {
        stepStarted();
        await gate;
        return { observation: { ok: true }, reward: 1, done: false };
      },
      state: () => ({}),
    }),
  });
  return { definition, openGate: () => openGate(), started };
}

async function metricsOf(url: string): Promise<Map<string, number>> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]));
}

/** OpenMetrics keeps `_total` for counters. */
function gaugesNamedAsCounters(text: string): string[] {
  return [...text.matchAll(/^# TYPE (\S+_total) gauge$/gm)].map(([, name]) => name!);
}

test('the metrics count steps, resets, sessions, sockets, errors and requests', async (t) => {
  const { url } = await startServer(t, counterEnvironment, { maxSessions: 10, metrics: prometheusMetrics() });
  await postJson(`${url}/reset`, {});
  const socket = await openRawSocket(url);
  await socket.ask({ type: 'reset' });
  await socket.ask({ type: 'step', data: { amount: 1 } });
  await socket.ask({ type: 'step', data: { amount: 1 } });
  await socket.ask({ type: 'step', data: { amount: 99 } });
  await socket.ask({ type: 'vector_reset', data: { count: 3 } });
  await socket.ask({ type: 'vector_step', data: { actions: [{ amount: 1 }, { amount: 1 }, { amount: 1 }] } });
  const metrics = await metricsOf(url);
  assert.equal(metrics.get('openenv_steps_total'), 5);
  assert.equal(metrics.get('openenv_resets_total'), 5);
  assert.equal(metrics.get('openenv_sessions'), 5);
  assert.equal(metrics.get('openenv_sessions_max'), 10);
  assert.equal(metrics.get('openenv_sockets'), 1);
  assert.equal(metrics.get('openenv_errors_total{code="VALIDATION_ERROR"}'), 1);
  assert.equal(
    metrics.get('openenv_http_request_duration_seconds_count{method="POST",route="/reset",status="200"}'),
    1,
  );
  assert.ok(metrics.has('process_resident_memory_bytes'));
  assert.deepEqual(gaugesNamedAsCounters(await (await fetch(`${url}/metrics`)).text()), []);
  await socket.close();
});

test('/health and /metrics tell that capacity is refused, and the size of all episodes', async (t) => {
  const sized = { ...counterEnvironment, episodeSize: ({ seed = 0 }) => seed };
  const metrics = prometheusMetrics();
  const { url } = await startServer(t, sized, { metrics, maxTotalSize: 100 });
  const socket = await openRawSocket(url);
  await socket.ask({ type: 'reset', data: { seed: 70 } });
  assert.equal((await get(`${url}/health`)).status, 'healthy');
  const refused = await postJson(`${url}/reset`, { seed: 31 });
  assert.deepEqual([refused.status, refused.body.code], [503, 'CAPACITY_REACHED']);
  const health = await get(`${url}/health`);
  assert.deepEqual([health.status, health.active_sessions], ['healthy', 1]);
  assert.match(
    health.reason,
    /^Capacity was refused \d\.\d s ago\. Taken now: 1 of 1024 sessions, .* 70 of 100 /,
  );
  const text = await (await fetch(`${url}/metrics`)).text();
  for (const line of ['episode_size 70', 'episode_size_max 100', 'capacity_refusals_total 1']) {
    assert.ok(text.includes(`openenv_${line}\n`), line);
  }
  await socket.close();
});

test('paths that nobody serves do not multiply the series', async (t) => {
  const { url } = await startServer(t, counterEnvironment, { metrics: prometheusMetrics() });
  for (let path = 0; path < 5; path++) await fetch(`${url}/nothing/${path}`);
  const metrics = await metricsOf(url);
  assert.equal(
    metrics.get('openenv_http_request_duration_seconds_count{method="GET",route="unknown",status="404"}'),
    5,
  );
});

test('there are no metrics without the option, which takes nothing but a factory', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  assert.equal((await fetch(`${url}/metrics`)).status, 404);
  assert.throws(() => createServer(counterEnvironment, { metrics: true as never }), {
    name: 'TypeError',
    message: /`prometheusMetrics\(\)` of @servegym\/openenv\/metrics.*got `true`/,
  });
});

test('the log tells requests, sockets, refusals and unexpected errors, with fields', async (t) => {
  const { logger, entries } = collectingLogger();
  const { url, server } = await startServer(t, counterEnvironment, { logger, maxSessions: 1 });
  const ended = new Promise<void>((resolve) => server.sessions.onClose(() => resolve()));
  const socket = await openRawSocket(url);
  const refused = await openRawSocket(url);
  await refused.close();
  await socket.close();
  await ended;
  await postJson(`${url}/reset`, {});
  await postJson(`${url}/step`, { action: { amount: 1, note: 'boom' } });
  await getJson(`${url}/health`);
  const told = entries.map(({ level, message, fields }) => {
    const { session, path, code, status, err } = fields;
    return [level, message, path, code ?? status ?? err?.message ?? /^[0-9a-f]{12}$/.test(session)];
  });
  assert.deepEqual(told, [
    ['info', 'socket opened', '/ws', true],
    ['warn', 'session refused', '/ws', 'CAPACITY_REACHED'],
    ['info', 'socket closed', '/ws', 1005],
    ['info', 'request answered', '/reset', 200],
    ['error', 'the environment counter failed', undefined, 'boom happened'],
    ['info', 'request answered', '/step', 500],
  ]);
});

test('no log has the id of a session, which is the key to it', async (t) => {
  const { logger, entries } = collectingLogger();
  const { url, server } = await startServer(t, counterEnvironment, { logger });
  mountEpisodeRoutes(server);
  const socket = await openRawSocket(url);
  const { body } = await postJson(`${url}/reset`, {});
  const ids = [socket.sessionId!, body.session_id];
  for (const id of ids) await getJson(`${url}/episodes/${id}`);
  await getJson(`${url}/state?session_id=${body.session_id}`);
  await socket.close();
  const told = JSON.stringify(entries);
  for (const id of ids) assert.ok(!told.includes(id), told);
  assert.match(told, /"path":"\/episodes\/:session_id"/);
});

test('draining refuses what is new, finishes what is old, and lets clients leave', async (t) => {
  const { url, listening, server } = await startServer(t, counterEnvironment);
  const socket = await openRawSocket(url);
  await socket.ask({ type: 'reset', data: { seed: 0 } });
  const drained = listening.drain({ graceMs: 60_000 });
  const health = await server.app.request('/health');
  assert.equal(health.status, 503);
  assert.equal(((await health.json()) as { status: string }).status, 'unhealthy');
  const reset = await server.app.request('/reset', { method: 'POST' });
  assert.equal(reset.status, 503);
  assert.equal(((await reset.json()) as { code: string }).code, 'DRAINING');
  await assert.rejects(openRawSocket(url), /ECONNREFUSED/);
  assert.equal((await socket.ask({ type: 'step', data: { amount: 1 } })).data.observation.total, 1);
  socket.send({ type: 'close' });
  await drained;
  assert.equal(server.sessions.size, 0);
});

test('clients that stay longer than the grace are closed', async (t) => {
  const { url, listening } = await startServer(t, counterEnvironment);
  const socket = await openRawSocket(url);
  await listening.drain({ graceMs: 10 });
  assert.equal(await socket.closed, 1001);
});

test('a step that is under way when the server closes is still answered', async (t) => {
  const { definition, openGate, started } = gatedEnvironment();
  const { url, listening } = await startServer(t, definition);
  const socket = await openRawSocket(url);
  await socket.ask({ type: 'reset' });
  const answer = socket.ask({ type: 'step', data: {} });
  await started;
  const closed = listening.close();
  openGate();
  assert.equal((await answer).data.observation.ok, true);
  assert.equal(await socket.closed, 1001);
  await closed;
});

test('a signal drains the server', async (t: TestContext) => {
  const { url, listening } = await startServer(t, counterEnvironment);
  const stop = drainOnSignal(listening, { graceMs: 0 });
  t.after(stop);
  const socket = await openRawSocket(url);
  process.emit('SIGTERM');
  assert.equal(await socket.closed, 1001);
  assert.equal(process.listenerCount('SIGTERM'), 0, 'a second signal ends the process');
});

test('users, passwords and keys in URLs are masked', () => {
  for (const [given, masked] of [
    ['redis://:secret@host:6379/0', 'redis://***@host:6379/0'],
    ['rediss://user:p@ss@host', 'rediss://***@host'],
    ['Sessions: redis://:a/b@host:6379.', 'Sessions: redis://***@host:6379.'],
    ['`postgres://me:pw@h/db` and https://k@h/v1', '`postgres://***@h/db` and https://***@h/v1'],
    ['redis://host?password=pw&db=1', 'redis://host?password=***&db=1'],
    ['https://host/v1?api_key=abc', 'https://host/v1?api_key=***'],
    ['{"queue":"redis://:pw@h:1"}', '{"queue":"redis://***@h:1"}'],
  ] as const) {
    assert.equal(maskUrls(given), masked);
  }
});

test('URLs without secrets and other texts stay as they are', () => {
  for (const text of [
    'http://127.0.0.1:7860/web/',
    'http://[::1]:7860/@me',
    'https://example.com/@me and a@b.org',
    'ws://host:80?task=easy&seed=1',
    'C:\\sessions.db, me@host',
  ]) {
    assert.equal(maskUrls(text), text);
  }
});

describe('an environment that somebody writes', () => {
  const loose = { ...counterEnvironment, action: z.object({ amount: z.int() }) };
  const refused: readonly [what: string, definition: object, message: RegExp][] = [
    ['an id with a space', { ...counterEnvironment, id: 'my env' }, /`id` to begin with a letter.*"my env"/],
    ['no id', { ...counterEnvironment, id: '' }, /`id` to begin with a letter/],
    [
      'an action that takes unknown fields',
      loose,
      /`action` of counter to be a `z.strictObject`: it takes fields/,
    ],
    [
      'an action that is a number',
      { ...counterEnvironment, action: z.int() },
      /it takes a value of the type integer/,
    ],
  ];
  for (const [what, definition, message] of refused)
    it(`is refused for ${what}`, () => {
      assert.throws(() => defineEnvironment(definition as never), { name: 'TypeError', message });
    });

  it('has an address that leads to its page', async (t) => {
    const { url } = await startServer(t, counterEnvironment);
    const answer = await fetch(`${url}/`);
    assert.equal(answer.status, 200);
    assert.equal(answer.url, `${url}/docs`);
    assert.match(await answer.text(), /Counter over OpenEnv/);
  });

  it('answers no observation that breaks its schema, and logs where it failed, over each transport', async (t) => {
    const broken = defineEnvironment({
      ...counterEnvironment,
      create() {
        const counter = counterEnvironment.create();
        const step: typeof counter.step = async (action) => ({
          ...(await counter.step(action)),
          observation: { total: 'many', note: '' } as never,
        });
        return { ...counter, step };
      },
    });
    const { logger, entries } = collectingLogger();
    const { url } = await startServer(t, broken, { logger });
    const message = /broke the schema of its observation: total: /;
    await postJson(`${url}/reset`, {});
    const { status, body } = await postJson(`${url}/step`, { action: { amount: 1 } });
    assert.equal(status, 500);
    assert.match(JSON.stringify(body), message);
    const socket = await openRawSocket(url);
    await socket.ask({ type: 'reset', data: {} });
    const { data } = (await socket.ask({ type: 'step', data: { amount: 1 } })) as {
      data: { message: string };
    };
    assert.match(data.message, message);
    await socket.close();
    const failures = entries.filter(({ level }) => level === 'error');
    assert.deepEqual(
      failures.map(({ message, fields }) => [message, /at judge/.test(fields.err.stack)]),
      Array(2).fill(['the environment counter failed', true]),
    );
  });

  it('writes failures with their stack to standard error, where nobody gave a log', async (t) => {
    const written = t.mock.method(console, 'error', () => {});
    const { url } = await startServer(t, counterEnvironment);
    await postJson(`${url}/reset`, {});
    await postJson(`${url}/step`, { action: { amount: 1, note: 'boom' } });
    const [[line, error]] = written.mock.calls.map((call) => call.arguments as unknown as [string, Error]);
    assert.equal(line, 'error: the environment counter failed');
    assert.match(error.stack!, /boom happened\n +at .*counter-environment\.ts/);
  });
});
