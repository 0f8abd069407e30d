import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect } from '../client/connect.ts';
import { counterEnvironment } from '../fixtures/counter-environment.ts';
import { openRawSocket } from '../fixtures/raw-socket.ts';
import { getJson, postJson, startServer } from '../fixtures/start-server.ts';
import { HUNDRED_A_MINUTE, RateLimiter } from './rate-limiter.ts';

test('with tokens, only requests and sockets that carry one come in; health stays open', async (t) => {
  const { url } = await startServer(t, counterEnvironment, {
    guard: { tokens: ['secret', 'other'], openPaths: ['/docs'] },
  });
  const wrong: Record<string, string>[] = [
    {},
    { authorization: 'Bearer wrong' },
    { authorization: 'secret' },
  ];
  for (const headers of wrong) {
    const refused = await postJson(`${url}/reset`, {}, headers);
    assert.deepEqual([refused.status, refused.body.code], [401, 'UNAUTHORIZED']);
    assert.equal(refused.headers.get('www-authenticate'), 'Bearer');
    await assert.rejects(openRawSocket(url, '/ws', { headers }), /401/);
  }
  assert.equal((await postJson(`${url}/reset`, {}, { authorization: 'Bearer other' })).status, 200);
  assert.equal((await getJson(`${url}/health`)).status, 200);
  assert.equal((await fetch(`${url}/docs`)).status, 200);
  assert.equal((await fetch(`${url}/docsandmore`)).status, 401);
  const client = await connect(url, { token: 'secret' });
  assert.equal((await client.reset({ seed: 1 })).observation.total, 1);
  assert.equal((await client.metadata()).name, 'Counter');
  await client.close();
  await assert.rejects(connect(url, { token: 'wrong' }), /the server answered 401/);
});

test('pages of other sites are kept out, those of the own host and of this machine are let in', async (t) => {
  const { url, listening } = await startServer(t, counterEnvironment);
  const open = (origin: string, headers = {}) => openRawSocket(url, '/ws', { origin, headers });
  await assert.rejects(open('https://evil.example'), /403/);
  await assert.rejects(open('null'), /403/);
  await assert.rejects(open('nonsense'), /403/);
  const refused = await postJson(`${url}/mcp`, {}, { origin: 'https://evil.example' });
  assert.deepEqual([refused.status, refused.body.code], [403, 'ORIGIN_REFUSED']);
  for (const socket of [
    await open(`http://127.0.0.1:${listening.port}`),
    await open('http://localhost:5173'),
    await open('https://me-space.hf.space', { 'x-forwarded-host': 'me-space.hf.space' }),
    await openRawSocket(url),
  ]) {
    assert.equal((await socket.ask({ type: 'state' })).type, 'state');
    await socket.close();
  }
});

test('a named origin may use the server from a browser: preflight, answer and socket', async (t) => {
  const origin = 'https://friend.example';
  const { url } = await startServer(t, counterEnvironment, { guard: { origins: [origin], tokens: ['x'] } });
  const preflight = await fetch(`${url}/reset`, {
    method: 'OPTIONS',
    headers: {
      origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization,content-type',
    },
  });
  assert.equal(preflight.status, 204);
  assert.equal(preflight.headers.get('access-control-allow-origin'), origin);
  assert.match(preflight.headers.get('access-control-allow-headers') ?? '', /authorization/);
  const authorization = 'Bearer x';
  const answer = await postJson(`${url}/reset`, {}, { origin, authorization });
  assert.equal(answer.headers.get('access-control-allow-origin'), origin);
  const socket = await openRawSocket(url, '/ws', { origin, headers: { authorization } });
  await socket.close();
  const stranger = await postJson(`${url}/reset`, {}, { origin: 'https://evil.example', authorization });
  assert.equal(stranger.status, 403);
});

test('a client over its rate is told to wait; others and health are not touched', async (t) => {
  const { url } = await startServer(t, counterEnvironment, {
    trustProxy: true,
    guard: { rateLimit: { requests: 3, perMs: 60_000 } },
  });
  const from = (address: string) => ({ 'x-forwarded-for': address });
  for (let request = 0; request < 3; request++) {
    assert.equal((await getJson(`${url}/metadata`, from('203.0.113.1'))).status, 200);
  }
  const refused = await getJson(`${url}/metadata`, from('203.0.113.1'));
  assert.deepEqual([refused.status, refused.body.code], [429, 'RATE_LIMITED']);
  const retryAfter = Number(refused.headers.get('retry-after'));
  assert.ok(retryAfter > 0 && retryAfter <= 20, `${retryAfter} s`);
  assert.match(refused.body.detail, /3 per 60 s are allowed/);
  await assert.rejects(openRawSocket(url, '/ws', { headers: from('203.0.113.1') }), /429/);
  assert.equal((await getJson(`${url}/health`, from('203.0.113.1'))).status, 200);
  assert.equal((await getJson(`${url}/metadata`, from('203.0.113.2'))).status, 200);
});

test('made-up tokens do not widen the rate of an address', async (t) => {
  const { url } = await startServer(t, counterEnvironment, {
    guard: { tokens: ['real'], rateLimit: { requests: 2, perMs: 60_000 } },
  });
  const statuses = [];
  for (const token of ['a', 'b', 'c']) {
    statuses.push((await getJson(`${url}/metadata`, { authorization: `Bearer ${token}` })).status);
  }
  assert.deepEqual(statuses, [401, 401, 429]);
  assert.equal((await getJson(`${url}/metadata`, { authorization: 'Bearer real' })).status, 200);
});

test('an allowance fills again as time goes by', () => {
  const limiter = new RateLimiter(HUNDRED_A_MINUTE);
  for (let request = 0; request < 100; request++) assert.equal(limiter.take('me', 0), 0);
  assert.equal(limiter.take('me', 0), 600);
  assert.equal(limiter.take('me', 300), 300);
  assert.equal(limiter.take('me', 600), 0);
  assert.ok(limiter.take('me', 600) > 0);
  for (let request = 0; request < 100; request++) assert.equal(limiter.take('me', 1e6), 0);
  assert.ok(limiter.take('me', 1e6) > 0, 'it holds no more than its size');
});

test('answers carry headers that protect, and let Hugging Face show the page in a frame', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const { headers } = await fetch(`${url}/docs`);
  assert.equal(headers.get('x-content-type-options'), 'nosniff');
  assert.equal(headers.get('x-frame-options'), null);
  assert.match(headers.get('content-security-policy') ?? '', /frame-ancestors .*https:\/\/huggingface\.co/);
});

test('options of the guard that make no sense are refused', async () => {
  const { Guard } = await import('./guard.ts');
  assert.throws(() => new Guard({ tokens: [''] }), /`tokens`/);
  assert.throws(() => new Guard({ rateLimit: { requests: 0, perMs: 1 } }), /`rateLimit`/);
  assert.throws(() => new Guard({ rateLimit: { requests: 1, perMs: Number.NaN } }), /`rateLimit`/);
});
