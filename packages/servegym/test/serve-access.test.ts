import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { hostname } from 'node:os';
import { describe, it } from 'node:test';
import { connect } from '@servegym/openenv/client';
import { startServe, startServeOn, startServeWith } from '../../../maintenance/test-servers/servegym.ts';
import { runCommand } from './in-process.ts';

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
      const { code, stderr } = await runCommand('serve', '--port', '0', ...args);
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
    const forged = { 'x-forwarded-for': '198.51.100.1, 203.0.113.1' };
    assert.equal((await ask(forged)).status, 200);
    assert.equal((await ask(forged)).status, 429);
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

/** Status of the answer to a client that reaches the server under a name. */
async function statusAt(url: string, host: string, path: string): Promise<number | undefined> {
  const asked = request(url + path, { headers: { host } }).end();
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  answer.resume();
  return answer.statusCode;
}

describe('the address of servegym serve', () => {
  const ANY_HOST = { HOST: undefined, SERVEGYM_STORE: 'memory' };

  it('is that of this machine alone, unless it is told otherwise', async (t) => {
    const server = await startServeOn(undefined, ANY_HOST);
    t.after(() => server.stop());
    assert.match(server.url, /^http:\/\/127\.0\.0\.1:\d+$/);
    const { port } = new URL(server.url);
    // All of 127.0.0.0/8 is this machine: a server on every address answers at 127.0.0.2 too.
    await assert.rejects(fetch(`http://127.0.0.2:${port}/health`));
    const { stdout, stderr } = await server.stop();
    assert.doesNotMatch(stdout + stderr, /other machines|no token/);
  });

  it('is told as it is, with a warning when anybody may use the server', async (t) => {
    const open = await startServeOn('0.0.0.0', ANY_HOST);
    t.after(() => open.stop());
    const { port } = new URL(open.url);
    assert.equal((await fetch(`http://127.0.0.2:${port}/health`)).status, 200);
    const opened = await open.stop();
    assert.match(
      opened.stdout,
      new RegExp(`^It listens on 0\\.0\\.0\\.0, port ${port}: other machines`, 'm'),
    );
    assert.match(opened.stderr, /^warning: the server asks for no token/);
    const guarded = await startServeOn('0.0.0.0', { ...ANY_HOST, SERVEGYM_TOKEN: 'secret' });
    t.after(() => guarded.stop());
    assert.equal(await statusAt(guarded.url, hostname(), '/health'), 200);
    assert.equal((await guarded.stop()).stderr, '');
  });

  it('goes by the names that it is given, and by no other', async (t) => {
    const server = await startServe('--allowed-hosts', 'gym.example.com,*.internal.example');
    t.after(() => server.stop());
    const ask = (host: string) => statusAt(server.url, host, '/tasks');
    for (const host of ['gym.example.com:7860', 'a.internal.example', 'localhost'])
      assert.equal(await ask(host), 200, host);
    for (const host of ['example.com', 'rebound.evil.example:7860']) assert.equal(await ask(host), 403, host);
  });

  it('refuses names that are none', async () => {
    for (const name of ['http://gym.example.com', 'gym.example.com:80', '']) {
      const { code, stderr } = await runCommand('serve', '--port', '0', '--allowed-hosts', name);
      assert.equal(code, 2, name);
      assert.match(stderr, /Expected names such as gym\.example\.com/);
    }
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
