import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { connect } from '@servegym/openenv';
import { runServegym, type ServeProcess, startServe } from './serve-process.ts';

describe('servegym serve', () => {
  let server: ServeProcess;
  before(async () => {
    server = await startServe();
  });
  after(() => server.stop());

  it('serves the console and everything that its page asks for', async () => {
    const page = await fetch(`${server.url}/web/`);
    assert.equal(page.status, 200);
    assert.match(page.headers.get('content-type') ?? '', /^text\/html/);
    assert.equal(page.headers.get('cache-control'), 'no-cache');
    const assets = [...(await page.text()).matchAll(/(?:src|href)="(\.\/assets\/[^"]+)"/g)].map(
      (match) => match[1]!,
    );
    assert.notEqual(assets.length, 0, 'the page refers to no asset by a relative address');
    for (const asset of assets) {
      const answer = await fetch(new URL(asset, `${server.url}/web/`));
      assert.equal(answer.status, 200, asset);
      assert.match(answer.headers.get('cache-control') ?? '', /immutable/);
      await answer.arrayBuffer();
    }
  });

  it('leads to the console from /, /web and /demo, by a relative redirect', async () => {
    for (const path of ['/', '/web', '/demo']) {
      const answer = await fetch(server.url + path, { redirect: 'manual' });
      assert.equal(answer.status, 307, path);
      assert.equal(answer.headers.get('location'), 'web/', path);
    }
  });

  it('does not send the page again to a browser that has it', async () => {
    const first = await fetch(`${server.url}/web/`);
    const tag = first.headers.get('etag');
    assert.ok(tag);
    const again = await fetch(`${server.url}/web/`, { headers: { 'if-none-match': tag } });
    assert.equal(again.status, 304);
  });

  it('answers 404 for a file that the console does not have, and nothing from outside of it', async () => {
    for (const path of ['web/missing.js', 'web/..%2f..%2fpackage.json', 'web/%2e%2e/%2e%2e/package.json']) {
      assert.equal((await fetch(`${server.url}/${path}`)).status, 404, path);
    }
  });

  it('serves the environment beside it', async () => {
    const { name } = await (await fetch(`${server.url}/metadata`)).json();
    assert.match(name, /llmserve/i);
    assert.equal((await fetch(`${server.url}/docs`)).status, 200);
  });
});

describe('servegym serve --env benchmark', () => {
  let server: ServeProcess;
  before(async () => {
    server = await startServe('--env', 'benchmark', '--max-sessions', '2');
  });
  after(() => server.stop());

  it('answers with its own address, and holds as many sessions as it is told', async () => {
    const sessions = await Promise.all([connect(server.url), connect(server.url)]);
    const told = await Promise.all(sessions.map((session) => session.reset()));
    assert.deepEqual(
      told.map(({ observation }) => observation.host_url),
      [server.url, server.url],
    );
    await assert.rejects(connect(server.url), { code: 'CAPACITY_REACHED', maxSessions: 2 });
    await Promise.all(sessions.map((session) => session.close()));
  });

  it('leads to its documentation where the console would be', async () => {
    for (const path of ['/', '/web', '/web/', '/demo']) {
      const answer = await fetch(server.url + path);
      assert.deepEqual([answer.status, answer.url], [200, `${server.url}/docs`], path);
    }
  });
});

describe('servegym serve, when it is told to stop', () => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    it(`ends cleanly on ${signal}, and closes the socket of a session in mid-episode`, async () => {
      const server = await startServe();
      const socket = new WebSocket(`${server.url.replace('http', 'ws')}/ws`);
      await once(socket, 'open');
      socket.send(JSON.stringify({ type: 'reset', data: {} }));
      await once(socket, 'message');
      const [[closed], ending] = await Promise.all([once(socket, 'close'), server.stop(signal)]);
      assert.equal((closed as CloseEvent).code, 1001);
      assert.deepEqual({ code: ending.code, stderr: ending.stderr }, { code: 0, stderr: '' });
    });
  }
});

describe('servegym serve, when it cannot listen', () => {
  it('says that the port is taken and how to choose another', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const { code, stderr } = await runServegym('serve', '--host', '127.0.0.1', '--port', String(port));
    other.close();
    assert.equal(code, 2);
    assert.match(stderr, new RegExp(`^error: Port ${port} is taken.*--port`));
    assert.doesNotMatch(stderr, /\n\s+at /, 'no stack trace');
  });

  it('refuses an address that this machine does not have', async () => {
    const { code, stderr } = await runServegym('serve', '--host', '192.0.2.1', '--port', '0');
    assert.equal(code, 2);
    assert.match(stderr, /`192\.0\.2\.1` is no address of this machine.*--host/);
  });

  it('refuses a port that is no port', async () => {
    for (const port of ['http', '-1', '70000', '80.5', '']) {
      const { code, stderr } = await runServegym('serve', '--port', port);
      assert.equal(code, 2, port);
      assert.match(stderr, /Expected a whole number from 0 to 65535/, port);
    }
  });
});
