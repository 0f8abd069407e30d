import assert from 'node:assert/strict';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it, type TestContext } from 'node:test';
import { benchmark } from '@servegym/environments';
import { createServer, type ServerOptions } from '@servegym/openenv';
import { type WebSocket, WebSocketServer } from 'ws';
import { type ServeProcess, startServe } from '../../maintenance/test-servers/servegym.ts';
import concurrency, { openFileLimit, requestGrid, requireOpenFiles } from '../cases/concurrency.ts';
import { runCase } from '../harness.ts';
import { type BatchPlan, runBatch } from './session-batch.ts';

describe('requestGrid', () => {
  it('takes numbers, and ranges that double and keep their end', () => {
    assert.deepEqual(requestGrid('7'), [7]);
    assert.deepEqual(requestGrid('1, 8,64'), [1, 8, 64]);
    assert.deepEqual(requestGrid('1..16'), [1, 2, 4, 8, 16]);
    assert.deepEqual(requestGrid('1..1000,16384'), [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 16_384]);
    assert.deepEqual(requestGrid('5..5'), [5]);
  });

  it('refuses what it cannot run', () => {
    for (const given of ['', '0', '16385', '1.5', '-1', '1,,2', 'all', '1..99999', '8..1'])
      assert.throws(() => requestGrid(given), /^Error: expected/, given);
  });
});

it('the limit of open files allows what fits, and is told with what to do', () => {
  assert.ok(openFileLimit()! > 0);
  requireOpenFiles(100, 164);
  requireOpenFiles(1e9, null);
  assert.throws(() => requireOpenFiles(2048, 1024), {
    message:
      '2048 sessions need 2112 open files, but this process may have 1024. Raise the limit with `ulimit -n 2112`, or ask for at most 960 sessions.',
  });
});

describe('concurrency', () => {
  let servers: ServeProcess[] = [];
  before(async () => {
    servers = await Promise.all([startServe('--env', 'benchmark'), startServe('--env', 'benchmark')]);
  });
  after(() => Promise.all(servers.map((server) => server.stop())));

  it('measures batches of sessions on several servers', async () => {
    const url = servers.map((server) => server.url).join(',');
    const lines: string[] = [];
    const args = ['--url', url, '--requests', '1..4,10', '--wait', '0', '--steps', '2'];
    const rows = await runCase(concurrency, args, (line) => lines.push(line));
    assert.deepEqual(
      rows.map(({ sessions }) => sessions),
      [1, 2, 4, 10],
    );
    assert.ok(lines.includes('\nlargest batch with at least 95 % success: 10'));
    const last = rows.at(-1)!;
    assert.deepEqual([last['success, %'], last.failures, last.processes], [100, '', 2]);
    assert.ok(Number(last['steps/s']) > Number(last['requests/s']));
  });
});

const PLAN: Omit<BatchPlan, 'socketUrls'> = {
  action: { wait_seconds: 0 },
  steps: 1,
  timeoutMs: 30_000,
  headers: {},
};

/** Serves the benchmark environment, by this name, until the test ends. */
async function serveBenchmark(t: TestContext, name: string, options: ServerOptions = {}) {
  const server = createServer(benchmark.definition({ hostUrl: () => name }), options);
  const listening = await server.listen({ port: 0, host: '127.0.0.1' });
  t.after(() => listening.close());
  return { server, socketUrl: `${listening.url.replace('http', 'ws')}/ws` };
}

/** A server that does with its sockets what it is told. */
async function serveByHand(t: TestContext, converse: (socket: WebSocket) => void): Promise<string> {
  const sockets = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  sockets.on('connection', converse);
  t.after(() => {
    for (const socket of sockets.clients) socket.terminate();
    sockets.close();
  });
  await new Promise((resolve) => sockets.once('listening', resolve));
  return `ws://127.0.0.1:${(sockets.address() as AddressInfo).port}/ws`;
}

describe('runBatch', () => {
  it('holds all its sessions at once, and tells how long they took', async (t) => {
    const { server, socketUrl } = await serveBenchmark(t, 'one');
    let closed = 0;
    let heldWhenFirstClosed = 0;
    server.sessions.onClose(() => {
      if (closed++ === 0) heldWhenFirstClosed = server.sessions.size + 1;
    });
    const result = await runBatch({ ...PLAN, socketUrls: [socketUrl], steps: 3 }, 100);
    assert.deepEqual([result.sessions, result.succeeded, result.failures], [100, 100, {}]);
    assert.equal(heldWhenFirstClosed, 100);
    assert.equal(server.sessions.counts.steps, 300);
    const { total, connect, reset, step } = result;
    assert.ok(connect!.p50 > 0 && reset!.p50 > 0 && step!.p50 > 0);
    assert.ok(total!.p50 <= total!.p99 && total!.p99 <= total!.max);
    assert.ok(total!.max >= Math.max(connect!.max, reset!.max, step!.max));
    assert.ok(Math.abs(result.stepsPerS / result.requestsPerS - 3) < 1e-9);
    assert.ok(Math.abs(result.requestsPerS * result.wallS - 100) < 1e-9);
  });

  it('deals its sessions out to several servers in turn', async (t) => {
    const servers = [await serveBenchmark(t, 'one'), await serveBenchmark(t, 'two')];
    const socketUrls = servers.map(({ socketUrl }) => socketUrl);
    const { answeredBy } = await runBatch({ ...PLAN, socketUrls }, 9);
    assert.deepEqual(answeredBy, { [`one pid ${process.pid}`]: 5, [`two pid ${process.pid}`]: 4 });
  });

  it('counts the sessions that a full server refuses', async (t) => {
    const { socketUrl } = await serveBenchmark(t, 'one', { maxSessions: 5 });
    const result = await runBatch({ ...PLAN, socketUrls: [socketUrl] }, 12);
    assert.deepEqual([result.succeeded, result.failures], [5, { CAPACITY_REACHED: 7 }]);
  });

  it('tells what else can go wrong, by its reason', async (t) => {
    const { socketUrl } = await serveBenchmark(t, 'one', { guard: { tokens: ['secret'] } });
    const silent = await serveByHand(t, (socket) => socket.on('message', () => {}));
    const rude = await serveByHand(t, (socket) => socket.on('message', () => socket.terminate()));
    const confused = await serveByHand(t, (socket) => socket.on('message', () => socket.send('oops')));
    const failuresAt = async (url: string, plan: Partial<BatchPlan> = {}) =>
      (await runBatch({ ...PLAN, ...plan, socketUrls: [url] }, 1)).failures;
    assert.deepEqual(await failuresAt(socketUrl), { 'HTTP 401': 1 });
    assert.deepEqual(await failuresAt(socketUrl, { headers: { authorization: 'Bearer secret' } }), {});
    assert.deepEqual(await failuresAt(silent, { timeoutMs: 1000 }), { 'TIMEOUT in reset': 1 });
    assert.deepEqual(await failuresAt(rude), { 'closed with code 1006 in reset': 1 });
    assert.deepEqual(await failuresAt(confused), { 'a reply that is not JSON': 1 });
    assert.deepEqual(await failuresAt('ws://127.0.0.1:9/ws'), { ECONNREFUSED: 1 });
    const { succeeded, total, requestsPerS } = await runBatch({ ...PLAN, socketUrls: [rude] }, 3);
    assert.deepEqual([succeeded, total, requestsPerS], [0, null, 0]);
  });

  it('counts an action that the server refuses as a failure', async (t) => {
    const { socketUrl } = await serveBenchmark(t, 'one');
    const result = await runBatch({ ...PLAN, action: { wait: 1 }, socketUrls: [socketUrl] }, 2);
    assert.deepEqual(result.failures, { VALIDATION_ERROR: 2 });
  });
});
