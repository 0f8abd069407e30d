import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { DEFAULT_ACTION, type llmserve } from '@servegym/environments';
import { connect } from '@servegym/openenv';
import { runServegym, type ServeProcess, startServe, startServeWith } from './serve-process.ts';

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

  it('serves the other environments below their names', async () => {
    for (const [path, name] of [
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
    for (const path of ['/episodes/x', '/leaderboard'])
      assert.equal((await fetch(server.url + path)).status, 404, path);
  });
});

describe('servegym serve --env with a module', () => {
  it('serves the environment that the module exports, with its console, a policy and a leaderboard', async (t) => {
    const module = join(import.meta.dirname, '../../openenv/examples/guess/environment.ts');
    const server = await startServe('--env', module);
    t.after(() => server.stop());
    assert.equal((await (await fetch(`${server.url}/metadata`)).json()).name, 'Guess');
    assert.equal((await fetch(`${server.url}/web/`)).status, 200);
    assert.deepEqual((await (await fetch(`${server.url}/leaderboard`)).json()).entries, []);
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
      assert.equal((await session.step(DEFAULT_ACTION)).observation.step_index, 1);
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

describe('servegym serve, with a guard', () => {
  const token = 'open-sesame-1234';

  it('lets nobody in without a token, and never writes it', async () => {
    const server = await startServeWith(
      { SERVEGYM_TOKEN: `other,${token}` },
      '--store',
      'memory',
      '--log-level',
      'info',
    );
    await assert.rejects(connect(server.url));
    assert.equal((await fetch(`${server.url}/metrics`)).status, 401);
    assert.equal((await fetch(`${server.url}/health`)).status, 200);
    const session = await connect(server.url, { token });
    await session.reset();
    await session.close();
    const { stdout, stderr } = await server.stop();
    assert.match(stderr, /warn +handshake refused path=\/ws code=UNAUTHORIZED/);
    assert.match(stderr, /info +socket opened/);
    assert.doesNotMatch(stdout + stderr, new RegExp(token));
  });

  it('tells of a token that cannot be one without telling the token', async () => {
    for (const args of [
      ['--token', ''],
      ['--token', 'open sesame'],
      ['--token', 'open\tsesame', '--token', 'good'],
    ]) {
      const { code, stderr } = await runServegym('serve', '--port', '0', ...args);
      assert.equal(code, 2);
      assert.match(stderr, /^error: Expected each token of --token or SERVEGYM_TOKEN/);
      assert.doesNotMatch(stderr, /sesame/);
    }
  });

  it('lets pages of the named sites in, and counts requests for each client behind a proxy', async (t) => {
    const origin = 'https://example.com';
    const server = await startServe('--cors', origin, '--rate-limit', '2', '--trust-proxy');
    t.after(() => server.stop());
    const ask = (headers: Record<string, string>) => fetch(`${server.url}/tasks`, { headers });
    const named = await ask({ origin, 'x-forwarded-for': '203.0.113.1' });
    assert.deepEqual([named.status, named.headers.get('access-control-allow-origin')], [200, origin]);
    assert.equal((await ask({ origin: 'https://elsewhere.example' })).status, 403);
    assert.equal((await ask({ 'x-forwarded-for': '203.0.113.1' })).status, 200);
    assert.equal((await ask({ 'x-forwarded-for': '203.0.113.1' })).status, 429);
    assert.equal((await ask({ 'x-forwarded-for': '203.0.113.2' })).status, 200);
  });

  it('takes `seed` for a hundred requests a minute', async (t) => {
    const server = await startServe('--rate-limit', 'seed');
    t.after(() => server.stop());
    let allowed = 0;
    while ((await fetch(`${server.url}/tasks`)).ok && allowed < 1000) allowed++;
    assert.ok(allowed >= 100 && allowed < 1000, `${allowed} requests were allowed`);
  });
});

describe('servegym serve --mode production', () => {
  it('leaves out what only trainers need', async (t) => {
    const server = await startServe('--mode', 'production');
    t.after(() => server.stop());
    for (const path of ['reset', 'step', 'policies/default/step']) {
      assert.equal((await fetch(`${server.url}/${path}`, { method: 'POST' })).status, 404, path);
    }
    assert.equal((await fetch(`${server.url}/policies`)).status, 404);
    assert.equal((await fetch(`${server.url}/web/`)).url, `${server.url}/docs`);
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const answer = await fetch(`${server.url}/mcp`, { method: 'POST', body: JSON.stringify(body) });
    assert.equal(answer.status, 200);
  });
});

describe('the log of servegym serve', () => {
  it('is a line of JSON for each request, with --log json --log-level info', async () => {
    const server = await startServe('--log', 'json', '--log-level', 'info');
    await fetch(`${server.url}/tasks`);
    const { stderr } = await server.stop();
    const [{ level, msg, method, path, status }] = stderr
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.deepEqual(
      { level, msg, method, path, status },
      { level: 'info', msg: 'request answered', method: 'GET', path: '/tasks', status: 200 },
    );
  });

  it('is empty as long as nothing is wrong', async () => {
    const server = await startServe();
    await fetch(`${server.url}/tasks`);
    assert.equal((await server.stop()).stderr, '');
  });
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

  it('refuses environments that are none, or twice the same', async () => {
    for (const [names, message] of [
      ['llmserve,llmserve', /whose names are different.*`llmserve` twice/s],
      ['llmserve,benchmark,benchmark', /whose names are different.*twice/s],
      ['llmserve,,benchmark', /names of environments with commas/],
      ['llmserve,nobody', /one of llmserve, inferencegym, benchmark, or a module.*`nobody`/s],
    ] as const) {
      const { code, stderr } = await runServegym('serve', '--port', '0', '--env', names);
      assert.equal(code, 2, stderr);
      assert.match(stderr, message);
    }
  });

  it('refuses a port that is no port', async () => {
    for (const port of ['http', '-1', '70000', '80.5', '']) {
      const { code, stderr } = await runServegym('serve', '--port', port);
      assert.equal(code, 2, port);
      assert.match(stderr, /Expected a whole number from 0 to 65535/, port);
    }
  });
});

describe('servegym serve, when a file or a value will not do', () => {
  it('says why sessions cannot be kept there, and what to do', async () => {
    const { code, stderr } = await runServegym('serve', '--port', '0', '--store', import.meta.filename);
    assert.equal(code, 2);
    assert.match(stderr, /^error: Sessions cannot be kept in `.*serve\.test\.ts`: file is not a database\./);
    assert.match(stderr, /--store or SERVEGYM_STORE; `--store memory`/);
  });

  it('names the value and what was expected', async () => {
    for (const [option, value, expected] of [
      ['--store', '', /a file, redis:.* or `memory`/],
      ['--cors', 'https://example.com/', /without a path or a slash/],
      ['--rate-limit', 'often', /a whole number or `seed`/],
      ['--rate-limit', '0', /a whole number from 1/],
      ['--session-timeout', '0', /a number above 0/],
      ['--drain-timeout', '-1', /a whole number from 0/],
      ['--mode', 'both', /simulation, production/],
      ['--log', 'xml', /pretty, json, silent/],
      ['--log-level', 'debug', /error, warn, info/],
    ] as const) {
      const { code, stderr } = await runServegym('serve', '--port', '0', `${option}=${value}`);
      assert.equal(code, 2, option);
      assert.match(stderr, expected, option);
    }
  });
});
