import assert from 'node:assert/strict';
import { createServer as createHttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { type WebSocket, WebSocketServer } from 'ws';
import { counterEnvironment } from '../fixtures/counter-environment.ts';
import { startServer } from '../fixtures/start-server.ts';
import { connect } from './connect.ts';
import { ClientError } from './exchange.ts';

/** A server that answers each message by hand. */
async function startScripted(t: TestContext, converse: (socket: WebSocket) => void): Promise<string> {
  const sockets = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  sockets.on('connection', converse);
  t.after(() => {
    for (const socket of sockets.clients) socket.terminate();
    sockets.close();
  });
  await new Promise((resolve) => sockets.once('listening', resolve));
  return `ws://127.0.0.1:${(sockets.address() as AddressInfo).port}`;
}

test('plays an episode with types from the definition, and grades it', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const client = await connect<typeof counterEnvironment>(url);
  t.after(() => client.close());
  let result = await client.reset({ seed: 1, target: 10 });
  while (!result.done) {
    result = await client.step({ amount: 3, note: '', mode: 'plain', weight: 1 });
  }
  assert.equal(result.observation.total, 10);
  assert.equal((await client.state()).target, 10);
  assert.deepEqual((await client.grade()).breakdown, { total: 10, target: 10 });
});

test('finds and calls tools, and reads what the server tells about itself', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const client = await connect(`${url}/`);
  t.after(() => client.close());
  assert.ok((await client.listTools()).some((tool) => tool.name === 'take_action'));
  await client.callTool('start_episode', { seed: 1 });
  const played = (await client.callTool('take_action', { amount: 2 })) as { observation: { total: number } };
  assert.equal(played.observation.total, 3);
  await assert.rejects(client.callTool('nope'), /Unknown tool: 'nope' \(JSON-RPC -32603\)/);
  assert.equal((await client.health()).status, 'healthy');
  assert.equal((await client.metadata()).name, 'Counter');
  assert.equal((await client.schema()).action.title, 'CountAction');
  assert.equal((await client.tasks()).tasks.length, 2);
});

test('an error of the server carries its code and issues and leaves the session usable', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const client = await connect(url);
  t.after(() => client.close());
  await assert.rejects(client.step({ amount: 1 }), { code: 'EXECUTION_ERROR', reason: 'NOT_RESET' });
  await client.reset({ seed: 0 });
  const error: ClientError = await client.step({ amount: 99 }).then(
    () => assert.fail('accepted'),
    (reason) => reason,
  );
  assert.ok(error instanceof ClientError);
  assert.equal(error.code, 'VALIDATION_ERROR');
  assert.deepEqual(error.issues[0]?.loc, ['amount']);
  assert.equal((await client.step({ amount: 1 })).reward, 0.1);
});

test('capacity is told when connecting', async (t) => {
  const { url } = await startServer(t, counterEnvironment, { maxSessions: 1 });
  const holder = await connect(url);
  await assert.rejects(connect(url), { code: 'CAPACITY_REACHED', maxSessions: 1 });
  await holder.close();
});

test('a session can be taken up again by its id', async (t) => {
  const { url, server } = await startServer(t, counterEnvironment);
  const session = server.sessions.open();
  const first = await connect(url, { sessionId: session.id });
  await first.reset({ seed: 1 });
  await first.close();
  const second = await connect(url, { sessionId: session.id });
  assert.equal((await second.state()).step_count, 0);
  assert.equal(second.sessionId, session.id);
  await second.close();
  await assert.rejects(connect(url, { sessionId: 'nope' }), { name: 'ClientError', code: 'SESSION_ERROR' });
});

test('a late reply is never taken for that of another request: the connection is dropped', async (t) => {
  const url = await startScripted(t, (socket) => {
    socket.on('message', (data) => {
      const { type } = JSON.parse(data.toString());
      if (type === 'state') socket.send('{"type":"state","data":{"episode_id":null,"step_count":0}}');
    });
  });
  const client = await connect(url, { replyTimeoutMs: 1000 });
  await assert.rejects(client.reset(), { code: 'TIMEOUT' });
  assert.equal(client.connected, false);
  await assert.rejects(client.state(), { code: 'TIMEOUT' });
  await client.close();
});

test('a refusal that comes unasked and one that comes with the first reply both reject', async (t) => {
  const refusal = JSON.stringify({
    type: 'error',
    data: { message: 'full', code: 'CAPACITY_REACHED', active_sessions: 1, max_sessions: 1 },
  });
  const atOnce = await startScripted(t, (socket) => {
    socket.send(refusal);
    socket.close(1000);
  });
  await assert.rejects(connect(atOnce), { code: 'CAPACITY_REACHED' });
  const later = await startScripted(t, (socket) => {
    socket.on('message', () => socket.send(refusal));
  });
  await assert.rejects(connect(later), { code: 'CAPACITY_REACHED' });
});

test('a lost connection rejects what is waiting and what comes after', async (t) => {
  const url = await startScripted(t, (socket) => {
    socket.once('message', () => {
      socket.send('{"type":"state","data":{"episode_id":null,"step_count":0}}');
      socket.once('message', () => socket.terminate());
    });
  });
  const client = await connect(url);
  const both = await Promise.allSettled([client.reset(), client.state()]);
  for (const { status, reason } of both as PromiseRejectedResult[]) {
    assert.equal(status, 'rejected');
    assert.equal(reason.code, 'CONNECTION_LOST');
  }
  await assert.rejects(client.reset(), { code: 'CONNECTION_LOST' });
});

test('nonsense from the server drops the connection with a clear error', async (t) => {
  const url = await startScripted(t, (socket) => {
    socket.on('message', () => socket.send('NaN'));
  });
  await assert.rejects(connect(url), /sent what is not JSON: NaN is not JSON/);
});

test('no server, and a server that is no OpenEnv server, reject as a lost connection', async (t) => {
  await assert.rejects(connect('http://127.0.0.1:1'), { code: 'CONNECTION_LOST' });
  const http = createHttpServer((_request, response) => response.end('hello'));
  t.after(() => http.close());
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const { port } = http.address() as AddressInfo;
  await assert.rejects(connect(`http://127.0.0.1:${port}`), /the server answered 200/);
});

test('a token goes with the handshake and with HTTP requests', async (t) => {
  const seen: (string | undefined)[] = [];
  const http = createHttpServer((request, response) => {
    seen.push(request.headers.authorization);
    response.end('{"status":"healthy"}');
  });
  const sockets = new WebSocketServer({ server: http });
  sockets.on('connection', (socket, request) => {
    seen.push(request.headers.authorization);
    socket.on('message', () => socket.send('{"type":"state","data":{"episode_id":null,"step_count":0}}'));
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  t.after(() => http.close());
  const { port } = http.address() as AddressInfo;
  const client = await connect(`http://127.0.0.1:${port}`, { token: 'secret' });
  await client.health();
  await client.close();
  http.closeAllConnections();
  assert.deepEqual(seen, ['Bearer secret', 'Bearer secret']);
});
