import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { before, describe, it, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { z } from 'zod';
import { counterEnvironment } from '../fixtures/counter-environment.ts';
import { openRawSocket, postJson, sendRequest, startServer } from '../fixtures/start-server.ts';
import { defineEnvironment } from '../protocol/definition.ts';
import type { OpenEnvServer } from './create-server.ts';
import { answerInOrder, type Reply } from './session-socket.ts';

let collectGarbage = () => {};
before(() => {
  setFlagsFromString('--expose-gc');
  collectGarbage = runInNewContext('gc');
});

/** The heap once nothing more has been freed for a second, MiB: what finalizers and closed sockets hold goes late. */
async function settledHeap(): Promise<number> {
  let heap = Number.POSITIVE_INFINITY;
  for (let unchanged = 0; unchanged < 20; unchanged++) {
    await sleep(50);
    collectGarbage();
    const now = process.memoryUsage().heapUsed / 2 ** 20;
    if (now < heap - 0.1) unchanged = 0;
    heap = Math.min(heap, now);
  }
  return heap;
}

test('sessions leave nothing behind: 100,000 in process, 2,000 over HTTP, 500 over sockets', async (t) => {
  const { server, url } = await startServer(t, counterEnvironment, { maxSessions: 100 });
  const inProcess = async (count: number) => {
    for (let opened = 0; opened < count; opened++) {
      const session = server.sessions.open();
      await session.reset({ seed: opened, target: 20 });
      await session.step({ amount: 1, note: '', mode: 'plain', weight: 1 });
    }
  };
  const overHttp = async (count: number) => {
    for (let opened = 0; opened < count; opened++) {
      const headers = { 'user-agent': `client ${opened % 500}` };
      const response = await server.app.request('/reset', { method: 'POST', headers });
      assert.equal(response.status, 200);
    }
  };
  const fromManyBrowsers = async (count: number) => {
    for (let opened = 0; opened < count; opened++) {
      const headers = { 'user-agent': `${opened} ${'x'.repeat(15_000)}` };
      assert.equal((await server.app.request('/reset', { method: 'POST', headers })).status, 200);
    }
  };
  const overSockets = async (count: number) => {
    for (let opened = 0; opened < count; opened++) {
      const socket = await openRawSocket(url);
      await socket.ask({ type: 'reset' });
      await socket.close();
    }
  };
  await inProcess(1000);
  await overHttp(1000);
  await overSockets(200);
  const before = await settledHeap();
  await inProcess(100_000);
  await overHttp(2000);
  await fromManyBrowsers(1000);
  await overSockets(500);
  const grown = (await settledHeap()) - before;
  assert.ok(grown < 4, `the heap grew by ${grown.toFixed(1)} MiB`);
});

/** Resolves when the next session of a server closes. */
function sessionEnd({ sessions }: OpenEnvServer): Promise<void> {
  return new Promise((resolve) => sessions.onClose(() => resolve()));
}

test('a whole episode: state before the reset, reset, steps, state, close', async (t) => {
  const { url, server } = await startServer(t, counterEnvironment);
  const socket = await openRawSocket(url);
  assert.deepEqual(await socket.ask({ type: 'state' }), {
    type: 'state',
    data: { episode_id: null, step_count: 0 },
  });
  assert.deepEqual(await socket.ask({ type: 'reset', data: { seed: 7, episode_id: 'ep-1' } }), {
    type: 'observation',
    data: { observation: { total: 7, note: 'ready' }, reward: null, done: false },
  });
  assert.deepEqual(await socket.ask({ type: 'step', data: { amount: 5, metadata: {} } }), {
    type: 'observation',
    data: { observation: { total: 12, note: '' }, reward: 0.5, done: false, metadata: { added: 5 } },
  });
  assert.deepEqual(await socket.ask({ type: 'state' }), {
    type: 'state',
    data: { episode_id: 'ep-1', step_count: 1, total: 12, target: 20, seed: 7, done: false },
  });
  assert.equal((await socket.ask({ type: 'reset' })).type, 'observation');
  const ended = sessionEnd(server);
  socket.send({ type: 'close' });
  assert.equal(await socket.closed, 1000);
  await ended;
  assert.equal(server.sessions.size, 0);
});

test('every mistake is answered with its code, and the session goes on', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const socket = await openRawSocket(url);
  await socket.ask({ type: 'reset', data: { seed: 0 } });
  const cases: [unknown, string, Record<string, unknown>?][] = [
    ['oops', 'INVALID_JSON'],
    ['{"type":"step","data":{"amount":NaN}}', 'INVALID_JSON'],
    [{ type: 'nope' }, 'UNKNOWN_TYPE'],
    [{}, 'UNKNOWN_TYPE'],
    [{ type: ['step'] }, 'UNKNOWN_TYPE'],
    [[], 'VALIDATION_ERROR'],
    ['3', 'VALIDATION_ERROR'],
    ['null', 'VALIDATION_ERROR'],
    [Buffer.from('{"type":"state"}'), 'VALIDATION_ERROR'],
    [{ type: 'step' }, 'VALIDATION_ERROR', { type: 'missing', loc: ['data'] }],
    [{ type: 'step', data: 3 }, 'VALIDATION_ERROR', { type: 'dict_type', loc: ['data'] }],
    [{ type: 'step', data: {} }, 'VALIDATION_ERROR', { type: 'missing', loc: ['amount'] }],
    [
      { type: 'step', data: { amount: 1, timeout_s: 3 } },
      'VALIDATION_ERROR',
      { type: 'extra_forbidden', loc: ['timeout_s'] },
    ],
    [
      { type: 'step', data: { amount: 1 }, id: 1 },
      'VALIDATION_ERROR',
      { type: 'extra_forbidden', loc: ['id'] },
    ],
    [{ type: 'state', data: {} }, 'VALIDATION_ERROR', { type: 'extra_forbidden', loc: ['data'] }],
    [{ type: 'reset', data: { seed: 'abc' } }, 'VALIDATION_ERROR', { type: 'int_type', loc: ['seed'] }],
    [{ type: 'step', data: { amount: 1, note: 'boom' } }, 'EXECUTION_ERROR'],
    [{ type: 'step', data: { amount: 1, note: 'refuse' } }, 'EXECUTION_ERROR'],
    ['{"type":"step","data":{"amount":1,"__proto__":{"polluted":1}}}', 'VALIDATION_ERROR'],
  ];
  for (const [message, code, issue] of cases) {
    const reply = await socket.ask(message);
    const shown = JSON.stringify(message);
    assert.equal(reply.type, 'error', shown);
    const data = reply.data as { code: string; message: string; errors?: { type: string; loc: unknown }[] };
    assert.equal(data.code, code, shown);
    assert.ok(data.message.length > 0, shown);
    if (issue) assert.deepEqual({ type: data.errors?.[0]?.type, loc: data.errors?.[0]?.loc }, issue);
  }
  const { data } = await socket.ask({ type: 'state' });
  assert.deepEqual({ total: data.total, steps: data.step_count }, { total: 0, steps: 0 });
  await socket.close();
});

test('an error of the environment names its reason', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const socket = await openRawSocket(url);
  const early = await socket.ask({ type: 'step', data: { amount: 1 } });
  assert.equal((early.data as { reason: string }).reason, 'NOT_RESET');
  await socket.ask({ type: 'reset', data: { target: 1, seed: 0 } });
  await socket.ask({ type: 'step', data: { amount: 1 } });
  const late = await socket.ask({ type: 'step', data: { amount: 1 } });
  assert.equal((late.data as { reason: string }).reason, 'EPISODE_OVER');
  await socket.close();
});

test('a refused client reads why, whether it sends first or listens first', async (t) => {
  const { url } = await startServer(t, counterEnvironment, { maxSessions: 1 });
  const holder = await openRawSocket(url);
  const listener = await openRawSocket(url);
  const expected = {
    type: 'error',
    data: {
      message: 'Server at capacity: 1/1 sessions active. Cannot accept new connections.',
      code: 'CAPACITY_REACHED',
      active_sessions: 1,
      max_sessions: 1,
    },
  };
  assert.deepEqual(await listener.next(), expected);
  assert.equal(listener.socket.readyState, listener.socket.OPEN, 'not closed before the client has spoken');
  listener.send({ type: 'reset' });
  assert.equal(await listener.closed, 1000);
  const sender = await openRawSocket(url);
  assert.deepEqual(await sender.ask({ type: 'reset' }), expected);
  assert.equal(await sender.closed, 1000);
  await holder.close();
});

test('a slot is free again after its socket closed, however it closed', async (t) => {
  const { url } = await startServer(t, counterEnvironment, { maxSessions: 1 });
  for (const leave of ['close', 'terminate'] as const) {
    const holder = await openRawSocket(url);
    assert.equal((await holder.ask({ type: 'reset' })).type, 'observation');
    holder.socket[leave]();
    await holder.closed;
    // The server learns of a lost peer from the network, not from us: ask until it has.
    for (;;) {
      const next = await openRawSocket(url);
      const reply = await next.ask({ type: 'state' });
      await next.close();
      if (reply.type === 'state') break;
    }
  }
});

test('resting HTTP sessions make room, the least recently used first; attached sockets do not', async (t) => {
  const { url, server } = await startServer(t, counterEnvironment, { maxSessions: 2 });
  const socket = await openRawSocket(url);
  await socket.ask({ type: 'reset' });
  const first = await postJson(`${url}/reset`, {});
  const second = await postJson(`${url}/reset`, {});
  assert.equal(server.sessions.find(first.body.session_id), undefined);
  assert.ok(server.sessions.find(second.body.session_id));
  const other = await openRawSocket(url);
  assert.equal((await other.ask({ type: 'state' })).type, 'state');
  const refused = await postJson(`${url}/reset`, {});
  assert.deepEqual([refused.status, refused.body.code], [503, 'CAPACITY_REACHED']);
  assert.equal(refused.headers.get('retry-after'), '1');
  await Promise.all([socket.close(), other.close()]);
});

test('an environment that cannot be made is told as FACTORY_ERROR', async (t) => {
  const broken = {
    ...counterEnvironment,
    create() {
      throw new Error('no licence');
    },
  };
  const { url, server } = await startServer(t, broken);
  const socket = await openRawSocket(url);
  assert.deepEqual(await socket.ask({ type: 'reset' }), {
    type: 'error',
    data: {
      message: "Environment factory 'counter' failed to create instance.",
      code: 'FACTORY_ERROR',
      factory_name: 'counter',
    },
  });
  assert.equal(await socket.closed, 1000);
  assert.equal((await postJson(`${url}/reset`, {})).status, 500);
  assert.equal(server.sessions.size, 0);
});

test('a socket can attach to a session that HTTP opened, one at a time, and leaves it standing', async (t) => {
  const { url, server } = await startServer(t, counterEnvironment);
  const { body } = await postJson(`${url}/reset`, { seed: 1 });
  const id: string = body.session_id;
  const socket = await openRawSocket(url, `/ws?session_id=${id}`);
  assert.equal(socket.sessionId, id);
  assert.equal((await socket.ask({ type: 'step', data: { amount: 2 } })).type, 'observation');
  const second = await openRawSocket(url, `/ws?session_id=${id}`);
  const refusal = (await second.next()).data as { code: string; message: string };
  assert.deepEqual(
    [refusal.code, refusal.message],
    ['SESSION_ERROR', `Session ${id} already has an attached WebSocket`],
  );
  await Promise.all([second.close(), socket.close()]);
  assert.equal(server.sessions.find(id)?.stepCount, 1);
  const unknown = await openRawSocket(url, '/ws?session_id=nope');
  assert.match((await unknown.next()).data.message as string, /^Unknown session_id: nope/);
  await unknown.close();
});

test('pipelined messages are answered in order, also when the environment is slow', async (t) => {
  const slow = defineEnvironment({
    id: 'slow',
    version: '1',
    name: 'Slow',
    description: 'Answers after a while.',
    action: z.strictObject({ n: z.int() }).meta({ title: 'SlowAction' }),
    observation: z.object({ n: z.int() }),
    state: z.object({}),
    create: () => ({
      reset: async () => ({ observation: { n: -1 }, reward: null, done: false }),
      async step({ n }: { n: number }) {
        for (let turn = 0; turn < 5 - (n % 5); turn++) await new Promise(setImmediate);
        return { observation: { n }, reward: 0, done: false };
      },
      state: () => ({}),
    }),
  });
  const { url } = await startServer(t, slow);
  const socket = await openRawSocket(url);
  socket.send({ type: 'reset' });
  const count = 300;
  for (let n = 0; n < count; n++) socket.send({ type: 'step', data: { n } });
  await socket.next();
  for (let n = 0; n < count; n++) {
    assert.equal((await socket.next()).data.observation.n, n);
  }
  await socket.close();
});

test('a message over the limit closes its own socket with 1009 and nothing else', async (t) => {
  const { url } = await startServer(t, counterEnvironment, { maxMessageBytes: 1000 });
  const other = await openRawSocket(url);
  const socket = await openRawSocket(url);
  socket.send('x'.repeat(2000));
  assert.equal(await socket.closed, 1009);
  assert.equal((await other.ask({ type: 'state' })).type, 'state');
  await other.close();
});

test('a peer that does not answer pings loses its session', async (t) => {
  const { url, server } = await startServer(t, counterEnvironment, { pingIntervalMs: 500 });
  const dead = await openRawSocket(url, '/ws', { autoPong: false });
  const alive = await openRawSocket(url);
  assert.equal(server.sessions.size, 2);
  assert.equal(await dead.closed, 1006);
  assert.equal((await alive.ask({ type: 'state' })).type, 'state');
  await alive.close();
});

test('a socket that rests too long is closed, if the server is told to', async (t) => {
  const { url, server } = await startServer(t, counterEnvironment, { socketIdleTimeoutMs: 50 });
  const ended = sessionEnd(server);
  const socket = await openRawSocket(url);
  assert.equal(await socket.closed, 1000);
  await ended;
  assert.equal(server.sessions.size, 0);
});

test('an upgrade to another path is answered 403, a plain GET of /ws 404', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  await assert.rejects(openRawSocket(url, '/elsewhere'), /403/);
  assert.equal((await fetch(`${url}/ws`)).status, 404);
});

test('an upgrade to what is not a WebSocket is ignored', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const headers = { connection: 'upgrade, http2-settings', upgrade: 'h2c', 'http2-settings': '' };
  const { status, body } = await sendRequest(`${url}/health`, { headers });
  assert.deepEqual([status, body.status], [200, 'healthy']);
});

test('a broken handshake opens no session', async (t) => {
  const { listening, server } = await startServer(t, counterEnvironment, { maxSessions: 1 });
  const socket = connectTcp(listening.port, '127.0.0.1');
  socket.write('GET /ws HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n');
  const [answer] = await once(socket, 'data');
  assert.match(String(answer), /^HTTP\/1.1 400/);
  await once(socket, 'close');
  assert.equal(server.sessions.size, 0);
});

test('closing the server closes its sockets with 1001', async (t) => {
  const { url, listening } = await startServer(t, counterEnvironment);
  const socket = await openRawSocket(url);
  await listening.close();
  assert.equal(await socket.closed, 1001);
});

/** A socket whose client reads nothing until it is told to. */
function unreadSocket(bufferedAmount = 0) {
  const sent: { reply: Reply; onSent: (() => void) | undefined }[] = [];
  const socket = Object.assign(new EventEmitter(), {
    readyState: 1,
    isPaused: false,
    isTerminated: false,
    bufferedAmount,
    pause() {
      socket.isPaused = true;
    },
    resume() {
      socket.isPaused = false;
    },
    send(reply: Reply, onSent?: () => void) {
      sent.push({ reply, onSent });
    },
    closeCode: 0,
    close(code: number) {
      socket.closeCode = code;
    },
    terminate() {
      socket.isTerminated = true;
    },
  });
  return { socket, sent };
}

type Socket = Parameters<typeof answerInOrder>[0];

/** After all microtasks, and so after all answers. */
const allAnswered = () => new Promise((resolve) => setImmediate(resolve));

describe('a socket that is answered in order', () => {
  it('is read no further once many messages wait, and read on when all are answered', async () => {
    const { socket, sent } = unreadSocket();
    const { promise: answered, resolve: finish } = Promise.withResolvers<void>();
    answerInOrder(socket as unknown as Socket, (data) => answered.then(() => `${data}`));
    let messages = 0;
    while (!socket.isPaused && messages < 1000) socket.emit('message', `${messages++}`);
    assert.ok(messages > 8 && messages < 1000, `paused after ${messages}`);
    finish();
    await allAnswered();
    assert.deepEqual(
      sent.map(({ reply }) => reply),
      Array.from({ length: messages }, (_, i) => `${i}`),
    );
    assert.equal(socket.isPaused, false);
  });

  it('is not served while much of what it was sent lies unread, and served again once it has read', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { socket, sent } = unreadSocket(1e9);
    answerInOrder(socket as unknown as Socket, (data) => `${data}`);
    socket.emit('message', 'a');
    socket.emit('message', 'b');
    await allAnswered();
    assert.deepEqual([sent.length, socket.isPaused], [1, true]);
    socket.bufferedAmount = 0;
    sent[0].onSent!();
    await allAnswered();
    assert.deepEqual([sent.map(({ reply }) => reply), socket.isPaused], [['a', 'b'], false]);
    t.mock.timers.tick(60_000);
    assert.equal(socket.isTerminated, false);
  });

  it('is closed after the reply that ends its session', async () => {
    const { socket, sent } = unreadSocket();
    let isOver = false;
    answerInOrder(
      socket as unknown as Socket,
      (data) => `${data}`,
      undefined,
      () => isOver,
    );
    socket.emit('message', 'a');
    await allAnswered();
    assert.equal(socket.closeCode, 0);
    isOver = true;
    socket.emit('message', 'b');
    await allAnswered();
    assert.deepEqual([sent.length, socket.closeCode], [2, 1000]);
  });

  it('is dropped when it reads nothing for a minute', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { socket, sent } = unreadSocket(1e9);
    answerInOrder(socket as unknown as Socket, (data) => `${data}`);
    socket.emit('message', 'a');
    await allAnswered();
    t.mock.timers.tick(59_999);
    assert.equal(socket.isTerminated, false);
    t.mock.timers.tick(1);
    assert.equal(socket.isTerminated, true);
    assert.equal(sent.length, 1);
  });
});
