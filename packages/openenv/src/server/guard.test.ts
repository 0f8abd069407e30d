import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { connect } from '../client/connect.ts';
import { counterEnvironment } from '../fixtures/counter-environment.ts';
import { getJson, openRawSocket, postJson, sendRequest, startServer } from '../fixtures/start-server.ts';
import { DEFAULT_RATE_LIMIT, RateLimiter } from './guard.ts';
import { clientAddress, clientNetwork, hostCheck } from './request-origin.ts';

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

test('a name that is made to resolve to this machine does not lead to the server, nor to its sockets', async (t) => {
  const { url, listening } = await startServer(t, counterEnvironment);
  const { port } = listening;
  const ask = (host: string, more = {}) => sendRequest(`${url}/tasks`, { headers: { host, ...more } });
  for (const host of [
    `rebound.evil.example:${port}`,
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '127.evil',
    '0.0.0.0',
    '192.0.2.1',
    '[2001:db8::1]',
  ]) {
    const refused = await ask(host);
    assert.deepEqual([refused.status, refused.body.code], [403, 'HOST_REFUSED'], host);
    // A page under that name is of the same origin as the server, as far as browsers can tell.
    const origin = `http://${host}`;
    assert.equal((await ask(host, { origin, 'sec-fetch-site': 'same-origin' })).status, 403, host);
    await assert.rejects(openRawSocket(url, '/ws', { origin, headers: { host } }), /403/, host);
    await assert.rejects(openRawSocket(url, '/mcp', { headers: { host } }), /403/, host);
  }
  assert.match(
    (await ask('evil.example')).body.detail,
    /got `evil\.example`.*add the name to its allowed hosts/,
  );
  for (const host of [
    'localhost',
    `LOCALHOST:${port}`,
    'localhost.',
    'gym.localhost',
    '127.0.0.1',
    '127.9.9.9',
    '[::1]:1',
  ]) {
    assert.equal((await ask(host)).status, 200, host);
  }
  await (await openRawSocket(url, '/ws', { headers: { host: 'localhost' } })).close();
});

test('allowed hosts are names, names with all below them, or all', async (t) => {
  const allowing = async (...allowedHosts: string[]) => {
    const { url } = await startServer(t, counterEnvironment, { guard: { allowedHosts } });
    return async (host: string) => (await sendRequest(`${url}/tasks`, { headers: { host } })).status === 200;
  };
  const named = await allowing('Gym.example.com', '*.hf.space', '192.0.2.7', '[2001:db8::1]');
  for (const host of [
    'gym.example.com:7860',
    'GYM.EXAMPLE.COM',
    'me.hf.space',
    'a.b.hf.space',
    '192.0.2.7',
    '[2001:db8::1]:80',
  ])
    assert.ok(await named(host), host);
  for (const host of [
    'example.com',
    'agym.example.com',
    'hf.space',
    'me.hf.space.evil.example',
    'xhf.space',
    '192.0.2.8',
  ])
    assert.ok(!(await named(host)), host);
  assert.ok(await (await allowing('*'))('any.example'));
});

test('a server that other machines reach knows no list of its addresses, but all of its names', () => {
  const allows = hostCheck([]);
  for (const local of ['192.0.2.7', '::ffff:192.0.2.7', '2001:db8::7']) {
    assert.ok(allows('203.0.113.5:7860', local));
    assert.ok(allows('[2001:db8::1]:7860', local));
    assert.ok(!allows('evil.example:7860', local));
  }
  for (const local of ['127.0.0.1', '::1', '::ffff:127.0.0.1', undefined]) {
    assert.ok(!allows('203.0.113.5:7860', local));
  }
  for (const host of [
    'evil.example#localhost',
    'localhost@evil.example',
    'localhost:1:2',
    '[::1',
    '[::1]evil',
    '',
    ':80',
  ])
    assert.ok(!allows(host, '192.0.2.7'), host);
});

test('what a page of another site loads is refused; links to the server, and frames of its pages, are not', async (t) => {
  const { url } = await startServer(t, counterEnvironment, { guard: { openPaths: ['/web'] } });
  const browser = (site: string, mode: string, dest: string) => ({
    headers: { 'sec-fetch-site': site, 'sec-fetch-mode': mode, 'sec-fetch-dest': dest },
  });
  for (const site of ['cross-site', 'same-site']) {
    for (const [mode, dest] of [
      ['no-cors', 'image'],
      ['no-cors', 'script'],
      ['no-cors', 'empty'],
      ['navigate', 'embed'],
      ['navigate', 'iframe'],
      ['websocket', 'websocket'],
    ] as const) {
      const refused = await sendRequest(`${url}/tasks`, browser(site, mode, dest));
      assert.deepEqual(
        [refused.status, refused.body.code],
        [403, 'ORIGIN_REFUSED'],
        `${site} ${mode} ${dest}`,
      );
    }
    await assert.rejects(openRawSocket(url, '/ws', browser(site, 'websocket', 'websocket')), /403/);
    await assert.rejects(openRawSocket(url, '/ws', browser(site, 'navigate', 'document')), /403/);
    const sent = await sendRequest(`${url}/reset`, {
      method: 'POST',
      ...browser(site, 'navigate', 'document'),
    });
    assert.equal(sent.status, 403);
    assert.equal((await sendRequest(`${url}/tasks`, browser(site, 'navigate', 'document'))).status, 200);
    assert.equal((await sendRequest(`${url}/docs`, browser(site, 'navigate', 'iframe'))).status, 200);
    assert.equal((await sendRequest(`${url}/web/`, browser(site, 'navigate', 'iframe'))).status, 404);
  }
  for (const site of ['same-origin', 'none']) {
    assert.equal((await sendRequest(`${url}/tasks`, browser(site, 'cors', 'empty'))).status, 200);
    assert.equal(
      (await sendRequest(`${url}/reset`, { method: 'POST', ...browser(site, 'cors', 'empty') })).status,
      200,
    );
  }
  const open = await startServer(t, counterEnvironment, { guard: { origins: ['*'] } });
  assert.equal(
    (await sendRequest(`${open.url}/tasks`, browser('cross-site', 'no-cors', 'image'))).status,
    200,
  );
});

test('a page is of the own host when the port is that of the host too', async (t) => {
  const { url } = await startServer(t, counterEnvironment, { guard: { allowedHosts: ['*'] } });
  const ask = async (host: string, origin: string) =>
    (await sendRequest(`${url}/reset`, { method: 'POST', headers: { host, origin } })).status;
  assert.equal(await ask('gym.example:7860', 'http://gym.example:7860'), 200);
  assert.equal(await ask('Gym.example', 'https://gym.example'), 200);
  assert.equal(await ask('gym.example', 'http://gym.example:7860'), 403);
  assert.equal(await ask('gym.example:7860', 'http://gym.example:7861'), 403);
});

test('forwarded hosts count behind a proxy, and only the one that the proxy wrote', async (t) => {
  const origin = 'https://me-space.hf.space';
  const forwarded = (hosts: string) => ({ origin, headers: { 'x-forwarded-host': hosts } });
  const wary = await startServer(t, counterEnvironment);
  await assert.rejects(openRawSocket(wary.url, '/ws', forwarded('me-space.hf.space')), /403/);
  const behind = await startServer(t, counterEnvironment, {
    trustedProxies: 1,
    guard: { allowedHosts: ['*.hf.space'] },
  });
  for (const hosts of ['me-space.hf.space', 'evil.example, me-space.hf.space']) {
    await (await openRawSocket(behind.url, '/ws', forwarded(hosts))).close();
  }
  for (const hosts of [
    'other.hf.space',
    'me-space.hf.space, other.hf.space',
    'me-space.hf.space, evil.example',
  ])
    await assert.rejects(openRawSocket(behind.url, '/ws', forwarded(hosts)), /403/);
});

test('a client over its rate is told to wait; others and health are not touched', async (t) => {
  const { url } = await startServer(t, counterEnvironment, {
    trustedProxies: 1,
    guard: { rateLimit: { requests: 3, perMs: 60_000 } },
  });
  const from = (address: string) => ({ 'x-forwarded-for': address });
  for (let request = 0; request < 3; request++) {
    // The client can write what it likes; the proxy appends where it really comes from, here with the port.
    const forged = `198.51.100.${request}, 203.0.113.1:${50_000 + request}`;
    assert.equal((await getJson(`${url}/metadata`, from(forged))).status, 200);
  }
  const refused = await getJson(`${url}/metadata`, from('203.0.113.1'));
  assert.deepEqual([refused.status, refused.body.code], [429, 'RATE_LIMITED']);
  const retryAfter = Number(refused.headers.get('retry-after'));
  assert.ok(retryAfter > 0 && retryAfter <= 20, `${retryAfter} s`);
  assert.match(refused.body.detail, /3 per 60 s are allowed/);
  assert.equal((await getJson(`${url}/metadata`, from('198.51.100.9, 203.0.113.1'))).status, 429);
  await assert.rejects(openRawSocket(url, '/ws', { headers: from('198.51.100.9, 203.0.113.1') }), /429/);
  assert.equal((await getJson(`${url}/health`, from('203.0.113.1'))).status, 200);
  assert.equal((await getJson(`${url}/metadata`, from('203.0.113.2'))).status, 200);
});

test('sockets count as requests', async (t) => {
  const { url } = await startServer(t, counterEnvironment, {
    guard: { rateLimit: { requests: 2, perMs: 60_000 } },
  });
  for (const path of ['/ws', '/mcp']) await (await openRawSocket(url, path)).close();
  await assert.rejects(openRawSocket(url), /429/);
  assert.equal((await getJson(`${url}/metadata`)).status, 429);
});

test('behind several proxies, the client is the peer of the first of them', () => {
  const address = (trustedProxies: number, forwarded?: string | string[]) =>
    clientAddress(
      { headers: { 'x-forwarded-for': forwarded as string }, socket: { remoteAddress: '10.0.0.1' } },
      trustedProxies,
    );
  const chain = 'forged, 203.0.113.1, 10.0.0.9';
  assert.deepEqual(
    [0, 1, 2].map((proxies) => address(proxies, chain)),
    ['10.0.0.1', '10.0.0.9', '203.0.113.1'],
  );
  assert.equal(address(2, '203.0.113.1'), '203.0.113.1');
  assert.equal(address(1, ['forged', '203.0.113.1']), '203.0.113.1');
  assert.equal(address(1, '[2001:db8::1]:443'), '2001:db8::1');
  assert.equal(address(1, ' , '), '10.0.0.1');
  assert.equal(address(1), '10.0.0.1');
});

test('an IPv6 client is its /64, and IPv4 is IPv4 however it is written', () => {
  const networks = {
    '203.0.113.1': '203.0.113.1',
    '::ffff:203.0.113.1': '203.0.113.1',
    '::FFFF:cb00:7101': '203.0.113.1',
    '2001:db8:1:2:3:4:5:6': '2001:db8:1:2::/64',
    '2001:0DB8:1:2::9': '2001:db8:1:2::/64',
    '2001:db8:1:3::9': '2001:db8:1:3::/64',
    '::1': '0:0:0:0::/64',
    'fe80::1%eth0': 'fe80:0:0:0::/64',
    'no address': 'no address',
  };
  for (const [address, network] of Object.entries(networks)) assert.equal(clientNetwork(address), network);
});

test('another address of the same /64 does not widen the rate of a client', async (t) => {
  const { url } = await startServer(t, counterEnvironment, {
    trustedProxies: 1,
    guard: { rateLimit: { requests: 2, perMs: 60_000 } },
  });
  const statuses = [];
  for (const address of ['2001:db8::1', '2001:db8::2', '2001:db8::3', '2001:db8:0:1::1']) {
    statuses.push((await getJson(`${url}/metadata`, { 'x-forwarded-for': address })).status);
  }
  assert.deepEqual(statuses, [200, 200, 429, 200]);
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
  const limiter = new RateLimiter(DEFAULT_RATE_LIMIT);
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

test('the documentation runs its own script alone, and a page keeps a policy of its own', async (t) => {
  const { url, server } = await startServer(t, counterEnvironment);
  server.app.get('/own', (context) =>
    context.html('<p>', 200, { 'content-security-policy': "default-src 'none'" }),
  );
  const policyOf = async (path: string) =>
    (await fetch(url + path)).headers.get('content-security-policy')!.split('; ');
  const docs = await policyOf('/docs');
  const page = await (await fetch(`${url}/docs`)).text();
  for (const tag of ['script', 'style']) {
    const inline = [...page.matchAll(new RegExp(`<${tag}>(.*?)</${tag}>`, 'gs'))].map(
      ([, source]) => source!,
    );
    assert.equal(inline.length, 1);
    const digest = createHash('sha256').update(inline[0]).digest('base64');
    assert.ok(docs.includes(`${tag}-src 'sha256-${digest}'`), docs.join('\n'));
  }
  assert.ok(docs.includes("default-src 'none'"));
  assert.doesNotMatch(page, / on\w+=|javascript:|<script src|style="/);
  const [, frames] = await policyOf('/own');
  assert.match(frames!, /^frame-ancestors /);
  for (const policy of [docs, await policyOf('/health')]) assert.equal(policy.at(-1), frames);
});

test('options of the guard that make no sense are refused', async () => {
  const { Guard } = await import('./guard.ts');
  assert.throws(() => new Guard({ tokens: [''] }), /`tokens`/);
  for (const host of ['', 'http://a.example', 'a.example:80', 'a..b', '*.*', 'a*', '[x]']) {
    assert.throws(() => new Guard({ allowedHosts: [host] }), /`allowedHosts`/, host);
  }
  assert.throws(() => new Guard({ rateLimit: { requests: 0, perMs: 1 } }), /`rateLimit`/);
  assert.throws(() => new Guard({ rateLimit: { requests: 1, perMs: Number.NaN } }), /`rateLimit`/);
});
