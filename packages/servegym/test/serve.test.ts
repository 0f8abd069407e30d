import assert from 'node:assert/strict';
import { once } from 'node:events';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { llmserve } from '@servegym/environments';
import { connect } from '@servegym/openenv/client';
import { type ServeProcess, startServe } from '../../../maintenance/test-servers/servegym.ts';

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
      (match) => match[1],
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

  it('serves the other environments below their names', async () => {
    for (const [path, name] of [
      ['/fleet', /fleet/],
      ['/inferencegym', /inferencegym/i],
      ['/benchmark', /benchmark/],
    ] as const) {
      assert.match((await (await fetch(`${server.url}${path}/metadata`)).json()).name, name);
      assert.equal((await fetch(`${server.url}${path}/web/`)).status, 200);
    }
    const { environments } = await (await fetch(`${server.url}/environments`)).json();
    assert.deepEqual(
      environments.map(({ id, path }: { id: string; path: string }) => [id, path]),
      [
        ['llmserve', './'],
        ['fleet', 'fleet/'],
        ['inferencegym', 'inferencegym/'],
        ['benchmark', 'benchmark/'],
      ],
    );
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

  it('has the console, but no files of episodes that cannot be replayed', async () => {
    assert.equal((await fetch(`${server.url}/`)).url, `${server.url}/web/`);
    assert.equal((await fetch(`${server.url}/episodes/x`)).status, 404);
  });
});

describe('servegym serve --env with a module', () => {
  it('serves the environment that the module exports, with its console and a policy', async (t) => {
    const module = join(import.meta.dirname, '../../openenv/examples/guess/environment.ts');
    const server = await startServe('--env', module);
    t.after(() => server.stop());
    assert.equal((await (await fetch(`${server.url}/metadata`)).json()).name, 'Guess');
    assert.equal((await fetch(`${server.url}/web/`)).status, 200);
    const [policy] = await (await fetch(`${server.url}/policies`)).json();
    assert.equal(policy.name, 'random');
  });
});

describe('servegym serve, when it is told to stop', () => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    it(`lets the session of a socket go on after ${signal}, and ends when that has ended`, async () => {
      const server = await startServe('--drain-timeout', '600');
      const session = await connect<typeof llmserve>(server.url);
      await session.reset({ seed: 1 });
      // npm and the terminal both send it.
      server.signal(signal);
      server.signal(signal);
      await server.said(/^Stopping: waiting up to 600 s for 1 session to end/m);
      assert.equal((await session.step(llmserve.defaultAction)).observation.step_index, 1);
      await assert.rejects(connect(server.url), 'it takes nobody else');
      await session.close();
      const { code, stderr } = await server.ended;
      assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    });
  }

  it('closes the sockets of sessions that are still there when the time is up', async () => {
    const server = await startServe('--drain-timeout', '0');
    const socket = new WebSocket(`${server.url.replace('http', 'ws')}/ws`);
    await once(socket, 'open');
    socket.send(JSON.stringify({ type: 'reset', data: {} }));
    await once(socket, 'message');
    const [[closed], ending] = await Promise.all([once(socket, 'close'), server.stop('SIGTERM')]);
    assert.equal((closed as CloseEvent).code, 1001);
    assert.deepEqual({ code: ending.code, stderr: ending.stderr }, { code: 0, stderr: '' });
  });
});
