import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { WebSocket } from 'ws';
import { handshakeAnswer, handshakeRefusal } from './accept-handshake.ts';
import { maskedFrame } from './masked-frame.fixture.ts';
import { OPCODES } from './opcode.ts';
import { ServerWebSocket } from './server-web-socket.ts';

const MAX_BYTES = 1_000_000;
const HANDSHAKE =
  'GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n' +
  'sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n';

/** Listens, and hands out the server's end of each socket that a client opens. */
async function listen(t: TestContext) {
  const opened: ServerWebSocket[] = [];
  const waiting: ((socket: ServerWebSocket) => void)[] = [];
  const http = createServer();
  const { promise: firstMessage, resolve: tellMessage } = Promise.withResolvers<unknown>();
  http.on('upgrade', (request, socket, head) => {
    const refusal = handshakeRefusal(request);
    if (refusal) {
      socket.end(`HTTP/1.1 ${refusal.status} No\r\n\r\n${refusal.detail}`);
      return;
    }
    socket.write(handshakeAnswer(request, 'x-more: 1'));
    const accepted = new ServerWebSocket(socket as Socket, head, MAX_BYTES);
    accepted.once('message', tellMessage);
    const waiter = waiting.shift();
    if (waiter) waiter(accepted);
    else opened.push(accepted);
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  t.after(() => {
    http.closeAllConnections();
    http.close();
  });
  const { port } = http.address() as AddressInfo;
  return {
    port,
    /** A client, and the server's end of it. */
    async open(protocols: string[] = []): Promise<{ client: WebSocket; server: ServerWebSocket }> {
      const client = new WebSocket(`ws://127.0.0.1:${port}`, protocols, { maxPayload: 0 });
      t.after(() => client.terminate());
      const [server] = await Promise.all([next(), once(client, 'open')]);
      return { client, server };
    },
    next,
    /** The first message that any socket is sent. */
    firstMessage,
  };

  function next(): Promise<ServerWebSocket> {
    const socket = opened.shift();
    return socket ? Promise.resolve(socket) : new Promise((resolve) => waiting.push(resolve));
  }
}

/** A connection that speaks bytes, after its handshake. */
async function openTcp(t: TestContext, port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  t.after(() => socket.destroy());
  socket.write(HANDSHAKE);
  await once(socket, 'data');
  return socket;
}

const TEXTS = [
  '',
  'x',
  'é',
  '\u0000',
  '😀'.repeat(40),
  ...[125, 126, 65_535, 65_536].flatMap((n) => ['y'.repeat(n), `${'y'.repeat(n - 2)}ü`]),
];

test('texts and bytes of every length arrive as they were sent, both ways', async (t) => {
  const { client, server } = await (await listen(t)).open();
  for (const data of [...TEXTS, ...TEXTS.map((text) => Buffer.from(text))]) {
    client.send(data);
    const [received] = await once(server, 'message');
    assert.deepEqual(received, data);
    server.send(data);
    const [back, isBinary] = await once(client, 'message');
    assert.equal(isBinary, typeof data !== 'string');
    assert.deepEqual(isBinary ? back : back.toString(), data);
  }
});

test('a client that says goodbye is answered with its own code, and both ends close', async (t) => {
  const sockets = await listen(t);
  for (const [code, told] of [
    [1000, 1000],
    [4001, 4001],
    [undefined, 1005],
  ] as const) {
    const { client, server } = await sockets.open();
    const closed = Promise.all([once(server, 'close'), once(client, 'close')]);
    client.close(code);
    const [[atServer], [atClient]] = await closed;
    assert.deepEqual([atServer, atClient], [told, told]);
    assert.deepEqual([server.isOpen, server.isClosed], [false, true]);
  }
});

test('a server that says goodbye is answered, and both ends close', async (t) => {
  const { client, server } = await (await listen(t)).open();
  const closed = Promise.all([once(server, 'close'), once(client, 'close')]);
  server.close(1001, 'für heute');
  assert.equal(server.isOpen, false);
  server.send('too late');
  const [[atServer], [atClient, reason]] = await closed;
  assert.deepEqual([atServer, atClient, reason.toString()], [1001, 1001, 'für heute']);
});

test('a client that is gone without a word leaves a socket closed with 1006', async (t) => {
  const sockets = await listen(t);
  const ends = { terminate: (client: Socket) => client.destroy(), hangUp: (client: Socket) => client.end() };
  for (const end of Object.values(ends)) {
    const client = await openTcp(t, sockets.port);
    client.resume();
    const server = await sockets.next();
    end(client);
    assert.deepEqual(await once(server, 'close'), [1006]);
  }
});

test('pings are answered with their payload, and those of the server with a pong', async (t) => {
  const { client, server } = await (await listen(t)).open();
  client.ping('abc');
  const [payload] = await once(client, 'pong');
  assert.equal(payload.toString(), 'abc');
  server.ping();
  await once(server, 'pong');
});

test('a client that pings and does not read is dropped', async (t) => {
  const sockets = await listen(t);
  const client = await openTcp(t, sockets.port);
  client.on('error', () => {});
  client.pause();
  const server = await sockets.next();
  const closed = once(server, 'close');
  const pings = Buffer.concat(
    Array.from({ length: 1000 }, () => maskedFrame({ opcode: OPCODES.ping, payload: new Uint8Array(125) })),
  );
  while (!server.isClosed) {
    const drained = new Promise((resolve) => client.once('drain', resolve));
    if (!client.write(pings)) await Promise.race([closed, drained]);
  }
  assert.deepEqual(await closed, [1006]);
});

test('a frame that breaks the protocol is answered with the code that says why; nothing after it is read', async (t) => {
  const sockets = await listen(t);
  const client = await openTcp(t, sockets.port);
  const server = await sockets.next();
  const messages: unknown[] = [];
  server.on('message', (data) => messages.push(data));
  const text = maskedFrame({ opcode: OPCODES.text, payload: Uint8Array.of(0x31) });
  client.write(Buffer.concat([text, Buffer.of(0xf1, 0x80, 0, 0, 0, 0), text]));
  const [answer] = (await once(client, 'data')) as [Buffer];
  assert.deepEqual([...answer], [0x88, 2, 1002 >> 8, 1002 & 0xff]);
  client.resume();
  await once(server, 'close');
  assert.deepEqual(messages, ['1']);
});

test('a paused socket is not read until it is resumed', async (t) => {
  const { client, server } = await (await listen(t)).open();
  server.pause();
  assert.equal(server.isPaused, true);
  const received: unknown[] = [];
  server.on('message', (data) => received.push(data));
  client.send('1');
  // The pong of another socket tells that the network has been looked at since.
  const other = await (await listen(t)).open();
  other.client.ping();
  await once(other.client, 'pong');
  assert.deepEqual(received, []);
  server.resume();
  await once(server, 'message');
  assert.deepEqual(received, ['1']);
});

test('a frame that came with the handshake is read', async (t) => {
  const { port, firstMessage } = await listen(t);
  const client = connect(port, '127.0.0.1');
  t.after(() => client.destroy());
  const frame = maskedFrame({ opcode: OPCODES.text, payload: Uint8Array.of(0x31) });
  client.write(Buffer.concat([Buffer.from(HANDSHAKE), frame]));
  assert.equal(await firstMessage, '1');
});

test('the first protocol that a client offers is taken, and headers are added', async (t) => {
  const sockets = await listen(t);
  const { client } = await sockets.open(['one', 'two']);
  assert.equal(client.protocol, 'one');
  const plain = new WebSocket(`ws://127.0.0.1:${sockets.port}`);
  t.after(() => plain.terminate());
  const [response] = await once(plain, 'upgrade');
  assert.equal(response.headers['x-more'], '1');
});

test('a handshake that is not right is refused with what was expected', async (t) => {
  const { port } = await listen(t);
  const good = {
    upgrade: 'websocket',
    'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
    'sec-websocket-version': '13',
  };
  const cases: [string, Record<string, string>, RegExp][] = [
    ['POST', good, /^HTTP\/1.1 405 .*GET, got POST/s],
    ['GET', { ...good, upgrade: 'h2c' }, /^HTTP\/1.1 400 .*upgrade: websocket/s],
    ['GET', { ...good, 'sec-websocket-key': 'short' }, /^HTTP\/1.1 400 .*sec-websocket-key/s],
    ['GET', { ...good, 'sec-websocket-version': '8' }, /^HTTP\/1.1 426 .*sec-websocket-version: 13/s],
    ['GET', { ...good, 'sec-websocket-protocol': 'a b, c' }, /^HTTP\/1.1 400 .*sec-websocket-protocol/s],
  ];
  for (const [method, headers, expected] of cases) {
    const client = connect(port, '127.0.0.1');
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    client.write(`${method} / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\n${lines.join('')}\r\n`);
    const [answer] = await once(client, 'data');
    assert.match(answer.toString(), expected);
    client.destroy();
  }
});
