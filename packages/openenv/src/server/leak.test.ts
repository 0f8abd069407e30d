import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { counterEnvironment } from '../fixtures/counter-environment.ts';
import { openRawSocket } from '../fixtures/raw-socket.ts';
import { startServer } from '../fixtures/start-server.ts';

let collectGarbage = () => {};
before(() => {
  setFlagsFromString('--expose-gc');
  collectGarbage = runInNewContext('gc');
});

/** The heap once nothing can be freed any more, MiB. */
async function settledHeap(): Promise<number> {
  let heap = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 5; round++) {
    await sleep(20);
    collectGarbage();
    heap = Math.min(heap, process.memoryUsage().heapUsed / 2 ** 20);
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
