import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { z } from 'zod';
import { counterEnvironment } from '../fixtures/counter-environment.ts';
import { type LooseJson, openRawSocket, postJson, startServer } from '../fixtures/start-server.ts';
import { toolEnvironment } from '../fixtures/tool-environment.ts';
import { defineTool } from '../protocol/definition.ts';
import { openSqliteStore } from '../sessions/sqlite-session-store.ts';
import { createServer } from './create-server.ts';

const request = (method: string, params: object = {}, id: unknown = 1) => ({
  jsonrpc: '2.0',
  method,
  params,
  id,
});

test('an agent opens a session, finds the tools, plays an episode with them and closes it', async (t) => {
  const { url, server } = await startServer(t, counterEnvironment);
  const call = async (method: string, params: object) =>
    (await postJson(`${url}/mcp`, request(method, params))).body.result as Record<string, never>;
  const { session_id } = await call('openenv/session/create', {});
  const { tools } = await call('tools/list', { session_id });
  assert.deepEqual(
    (tools as { name: string }[]).map((tool) => tool.name),
    ['start_episode', 'take_action', 'get_state', 'list_tasks', 'grade_episode'],
  );
  for (const tool of tools as { input_schema: unknown; inputSchema: { type: string } }[]) {
    assert.deepEqual(tool.input_schema, tool.inputSchema);
    assert.equal(tool.inputSchema.type, 'object');
  }
  const use = async (name: string, args: object) =>
    (await call('tools/call', { session_id, name, arguments: args })).data as Record<string, never>;
  await use('start_episode', { seed: 3 });
  const played = await use('take_action', { amount: 10 });
  assert.deepEqual(played.observation, { total: 13, note: '' });
  assert.equal((await use('get_state', {})).step_count, 1);
  assert.deepEqual((await use('grade_episode', {})).breakdown, { total: 13, target: 20 });
  assert.deepEqual(await call('openenv/session/close', { session_id }), { session_id, closed: true });
  assert.equal(server.sessions.size, 0);
});

test('mistakes get the codes of JSON-RPC, always with status 200', async (t) => {
  const { url, server } = await startServer(t, counterEnvironment);
  const cases: [unknown, number, RegExp][] = [
    ['oops', -32700, /^Parse error/],
    [{}, -32600, /^Invalid request/],
    ['[]', -32600, /^Invalid request/],
    [{ ...request('tools/list'), extra: 1 }, -32600, /unexpected key 'extra'/],
    [request('tools/list', {}, {}), -32600, /'id'/],
    [{ jsonrpc: '2.0', id: 1, method: 'tools/list', params: [] }, -32602, /^Params must be an object/],
    [request('nope'), -32601, /^Method not found: nope/],
    [request('tools/call'), -32602, /^Missing 'name' in params/],
    [request('tools/call', { name: 'nope' }), -32603, /^Unknown tool: 'nope'/],
    [request('tools/call', { name: 'get_state', session_id: 'x' }), -32602, /^Unknown session_id: x/],
    [request('tools/call', { name: 'take_action', arguments: { amount: 1 } }), -32603, /no episode yet/],
    [request('tools/call', { name: 'take_action', arguments: { amount: 'x' } }), -32603, /valid integer/],
    [request('openenv/session/close'), -32602, /'session_id' is required/],
    [request('openenv/session/close', { session_id: 'x' }), -32602, /^Unknown session_id/],
  ];
  for (const [body, code, message] of cases) {
    const answer = await postJson(`${url}/mcp`, body);
    assert.equal(answer.status, 200);
    const error = answer.body.error as { code: number; message: string; data: unknown };
    assert.equal(error.code, code, JSON.stringify(body));
    assert.match(error.message, message);
  }
  assert.equal(server.sessions.size, 0, 'temporary sessions are gone');
});

test('capacity is refused with -32000 and the numbers', async (t) => {
  const { url } = await startServer(t, counterEnvironment, { maxSessions: 1 });
  const holder = await openRawSocket(url);
  const { body } = await postJson(`${url}/mcp`, request('openenv/session/create'));
  const error = body.error as { code: number; data: unknown };
  assert.deepEqual([error.code, error.data], [-32000, { active_sessions: 1, max_sessions: 1 }]);
  const refused = await openRawSocket(url, '/mcp');
  assert.equal((await refused.next()).error.code, -32000);
  await Promise.all([holder.close(), refused.close()]);
});

test('a WebSocket at /mcp speaks bare JSON-RPC with a session of its own', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const socket = await openRawSocket(url, '/mcp');
  const own = await socket.ask(request('openenv/session/create'));
  assert.deepEqual(own.result, { session_id: socket.sessionId });
  await socket.ask(request('tools/call', { name: 'start_episode', arguments: { seed: 1 } }));
  const played = await socket.ask(
    request('tools/call', { name: 'take_action', arguments: { amount: 1 } }, 'x'),
  );
  assert.equal(played.id, 'x');
  assert.equal(played.result.data.observation.total, 2);
  const closing = await socket.ask(request('openenv/session/close', own.result));
  assert.equal(closing.error.code, -32600);
  assert.equal((await socket.ask('oops')).error.code, -32700);
  await socket.close();
});

test('JSON-RPC inside the session protocol acts on that session', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const socket = await openRawSocket(url);
  await socket.ask({ type: 'reset', data: { seed: 4 } });
  const reply = await socket.ask({
    type: 'mcp',
    data: request('tools/call', { name: 'take_action', arguments: { amount: 1 } }),
  });
  assert.equal(reply.type, 'mcp');
  assert.equal(reply.data.result.structured_content.observation.total, 5);
  const bad = await socket.ask({ type: 'mcp', data: {} });
  assert.equal(bad.data.error.code, -32600);
  await socket.close();
});

test('clients before OpenEnv 0.4 reach the tools as steps, also before a reset', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const socket = await openRawSocket(url);
  const listed = await socket.ask({ type: 'step', data: { type: 'list_tools' } });
  assert.equal(listed.data.observation.tools.length, 5);
  const call = async (tool_name: string, args: object) =>
    (await socket.ask({ type: 'step', data: { type: 'call_tool', tool_name, arguments: args } })).data
      .observation as unknown as { result: { data: unknown } | null; error: { error_type: string } | null };
  assert.equal((await call('nope', {})).error?.error_type, 'tool_not_found');
  assert.equal((await call('take_action', { amount: 'x' })).error?.error_type, 'invalid_args');
  assert.equal((await call('take_action', { amount: 1 })).error?.error_type, 'execution_error');
  const started = await call('start_episode', { seed: 2 });
  assert.deepEqual(started.result?.data, {
    observation: { total: 2, note: 'ready' },
    reward: null,
    done: false,
  });
  await socket.close();
});

test('a session that a socket holds closes when the socket lets go of it', async (t) => {
  const { url, server } = await startServer(t, counterEnvironment);
  const { body } = await postJson(`${url}/mcp`, request('openenv/session/create'));
  const { session_id } = body.result as { session_id: string };
  const socket = await openRawSocket(url, `/ws?session_id=${session_id}`);
  const closing = await postJson(`${url}/mcp`, request('openenv/session/close', { session_id }));
  assert.deepEqual(closing.body.result, { session_id, closed: false, closing: true });
  assert.equal((await socket.ask({ type: 'reset' })).type, 'observation');
  const closed = new Promise<void>((resolve) => server.sessions.onClose(() => resolve()));
  await socket.close();
  await closed;
  assert.equal(server.sessions.size, 0);
});

test('in production the episode is started for the agent, who cannot restart it', async (t) => {
  const { url } = await startServer(t, counterEnvironment, { mode: 'production' });
  const socket = await openRawSocket(url, '/mcp');
  const { result } = await socket.ask(request('tools/list'));
  assert.ok(!(result.tools as { name: string }[]).some((tool) => tool.name === 'start_episode'));
  const played = await socket.ask(request('tools/call', { name: 'take_action', arguments: { amount: 1 } }));
  assert.equal(played.result.data.done, false);
  await socket.close();
});

const OWN = ['echo_message', 'divide', 'count_twice'];
const GENERATED_TOOLS = ['start_episode', 'take_action', 'get_state', 'list_tasks', 'grade_episode'];

function rpc(method: string, params: object) {
  return { jsonrpc: '2.0', id: 1, method, params };
}

test('the tools of an environment are listed and called over JSON-RPC', async (t) => {
  const { url } = await startServer(t, toolEnvironment);
  const ask = async (method: string, params: object): Promise<LooseJson> =>
    (await postJson(`${url}/mcp`, rpc(method, params))).body;
  const { tools } = (await ask('tools/list', {})).result;
  assert.deepEqual(
    tools.map(({ name }: LooseJson) => name),
    [...GENERATED_TOOLS, ...OWN],
  );
  assert.deepEqual(tools.at(-1), {
    name: 'count_twice',
    title: 'Count twice',
    description: 'Adds an amount twice.',
    input_schema: tools.at(-1).inputSchema,
    inputSchema: {
      type: 'object',
      properties: { amount: { type: 'integer', minimum: 0, maximum: 10, title: 'Amount' } },
      required: ['amount'],
      additionalProperties: false,
    },
  });
  const { session_id } = (await ask('openenv/session/create', {})).result;
  const call = (name: string, args: object) => ask('tools/call', { session_id, name, arguments: args });
  assert.deepEqual((await call('echo_message', { message: 'hi' })).result, {
    content: [{ type: 'text', text: 'hi' }],
    structured_content: { result: 'hi' },
    structuredContent: { result: 'hi' },
    data: 'hi',
    is_error: false,
    isError: false,
  });
  assert.match((await call('divide', { number: 1, by: 0 })).error.message, /^Expected a divisor/);
  assert.match((await call('divide', { number: 'x', by: 0 })).error.message, /^number: .*valid number/);
  assert.match((await call('count_twice', { amount: 1 })).error.message, /no episode yet/);
  await call('start_episode', { seed: 3 });
  assert.deepEqual((await call('count_twice', { amount: 4 })).result.data, { total: 11, actions: 2 });
  assert.equal((await call('get_state', {})).result.data.step_count, 2);
});

test('the tools of an environment are listed and called in the session protocol', async (t) => {
  const { url } = await startServer(t, toolEnvironment);
  const socket = await openRawSocket(url);
  const step = async (data: object): Promise<LooseJson> =>
    (await socket.ask({ type: 'step', data })).data.observation;
  const call = (tool_name: string, args: object) => step({ type: 'call_tool', tool_name, arguments: args });
  const { tools } = await step({ type: 'list_tools' });
  assert.deepEqual(
    tools.slice(GENERATED_TOOLS.length).map(({ name }: LooseJson) => name),
    OWN,
  );
  assert.equal((await call('echo_message', { message: 'hi' })).result.data, 'hi');
  assert.equal((await call('echo_message', {})).error.error_type, 'invalid_args');
  assert.equal((await call('divide', { number: 1, by: 0 })).error.error_type, 'execution_error');
  await socket.ask({ type: 'reset', data: { seed: 1 } });
  assert.deepEqual((await call('count_twice', { amount: 2 })).result.data, { total: 5, actions: 2 });
  const mcp = await socket.ask({
    type: 'mcp',
    data: rpc('tools/call', { name: 'divide', arguments: { number: 3, by: 2 } }),
  });
  assert.deepEqual(mcp.data.result.data, { quotient: 1.5 });
  await socket.close();
});

for (const revision of ['legacy', { pin: '2026-07-28' }] as const) {
  const name = revision === 'legacy' ? 'the 2025 revisions' : 'the 2026 revision';
  test(`a stock MCP client of ${name} lists and calls the tools of an environment`, async (t) => {
    const { url } = await startServer(t, toolEnvironment);
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: revision } });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
    t.after(() => client.close());
    const { tools } = await client.listTools();
    assert.deepEqual(
      tools.slice(GENERATED_TOOLS.length).map((tool) => [tool.name, tool.annotations?.readOnlyHint]),
      [
        ['echo_message', true],
        ['divide', false],
        ['count_twice', false],
      ],
    );
    const call = (tool: string, args: Record<string, unknown>) =>
      client.callTool({ name: tool, arguments: args });
    await call('start_episode', { seed: 1 });
    const echoed = await call('echo_message', { message: 'hi' });
    assert.deepEqual(
      [echoed.content, echoed.structuredContent],
      [[{ type: 'text', text: 'hi' }], { result: 'hi' }],
    );
    assert.deepEqual((await call('count_twice', { amount: 2 })).structuredContent, { total: 5, actions: 2 });
    const failed = await call('divide', { number: 1, by: 0 });
    assert.deepEqual(
      [failed.isError, failed.content],
      [true, [{ type: 'text', text: 'Expected a divisor that is not 0' }]],
    );
  });
}

test('in production a tool finds an episode, also for a client without a session, and another when that is gone', async (t) => {
  const { url, server } = await startServer(t, toolEnvironment, { mode: 'production' });
  const client = new Client(
    { name: 'test', version: '1' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
  t.after(() => client.close());
  const call = () => client.callTool({ name: 'count_twice', arguments: { amount: 0 } });
  const count = async () => ((await call()).structuredContent as LooseJson).actions;
  assert.deepEqual([await count(), await count()], [2, 4]);
  for (const { id } of server.sessions) await server.sessions.release(id);
  assert.match(JSON.stringify(await call()), /is not kept here: .*"isError":true/);
  assert.equal(await count(), 2);
});

test('an episode that a tool has played is rebuilt from the store', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'servegym-tools-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'sessions.db');
  const first = await createServer(toolEnvironment, { store: openSqliteStore(file) }).listen({
    port: 0,
    host: '127.0.0.1',
  });
  const call = async (url: string, session_id: string, name: string, args: object): Promise<LooseJson> =>
    (await postJson(`${url}/mcp`, rpc('tools/call', { session_id, name, arguments: args }))).body.result;
  const created = await postJson(`${first.url}/mcp`, rpc('openenv/session/create', {}));
  const { session_id } = created.body.result as { session_id: string };
  await call(first.url, session_id, 'start_episode', { seed: 1, episode_id: 'kept' });
  await call(first.url, session_id, 'count_twice', { amount: 3 });
  await first.close();
  const { url } = await startServer(t, toolEnvironment, { store: openSqliteStore(file) });
  const { total, step_count, episode_id } = (await call(url, session_id, 'get_state', {})).data;
  assert.deepEqual([total, step_count, episode_id], [7, 2, 'kept']);
});

test('names that are reserved, taken or malformed are refused before anything is served', () => {
  const tool = (name: string, shape: z.ZodRawShape = {}) =>
    defineTool({ name, description: 'x', input: z.strictObject(shape), call: () => null });
  const serve = (...tools: ReturnType<typeof tool>[]) =>
    createServer({ ...counterEnvironment, tools: tools as never });
  for (const name of ['reset', 'step', 'state', 'close', ...GENERATED_TOOLS]) {
    assert.throws(() => serve(tool(name)), {
      name: 'EnvironmentError',
      code: 'TOOL_NAME',
      message: new RegExp(`\`${name}\``),
    });
  }
  for (const name of ['', 'two words', 'x'.repeat(65), 'é']) {
    assert.throws(() => serve(tool(name)), { code: 'TOOL_NAME', message: /1 to 64 letters/ });
  }
  assert.throws(() => serve(tool('twice'), tool('twice')), { code: 'TOOL_NAME', message: /`twice`/ });
  assert.throws(() => serve(tool('mine', { session_id: z.string() })), {
    code: 'TOOL_NAME',
    message: /session_id/,
  });
});

/** A stock client of the TypeScript SDK. */
async function connectClient(t: TestContext, url: string, revision: 'legacy' | { pin: string }) {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: revision } });
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`));
  await client.connect(transport);
  t.after(() => client.close());
  return {
    client,
    transport,
    async use(name: string, args: Record<string, unknown> = {}): Promise<LooseJson> {
      const result = await client.callTool({ name, arguments: args });
      assert.notEqual(result.isError, true, JSON.stringify(result.content));
      return result.structuredContent;
    },
  };
}

for (const revision of ['legacy', { pin: '2026-07-28' }] as const) {
  const name = revision === 'legacy' ? 'the 2025 revisions' : 'the 2026 revision';

  test(`a stock client of ${name} lists the tools and plays an episode`, async (t) => {
    const { url } = await startServer(t, counterEnvironment);
    const { client, use } = await connectClient(t, url, revision);
    const { tools } = await client.listTools();
    assert.deepEqual(
      tools.map((tool) => tool.name),
      ['start_episode', 'take_action', 'get_state', 'list_tasks', 'grade_episode'],
    );
    const { session_id, observation } = await use('start_episode', { seed: 3, target: 10 });
    assert.equal(observation.total, 3);
    let result: LooseJson = { done: false };
    while (!result.done) result = await use('take_action', { amount: 4, session_id });
    assert.equal(result.observation.total, 11);
    assert.equal((await use('get_state')).step_count, 2);
    assert.deepEqual((await use('grade_episode')).breakdown, { total: 11, target: 10 });
    assert.equal((await use('list_tasks')).tasks.length, 2);
  });

  test(`a mistake comes back in the result, where the model reads it (${name})`, async (t) => {
    const { url } = await startServer(t, counterEnvironment);
    const { client, use } = await connectClient(t, url, revision);
    const fail = async (name: string, args: Record<string, unknown>) => {
      const result = await client.callTool({ name, arguments: args });
      assert.equal(result.isError, true);
      return (result.content as { text: string }[])[0]?.text;
    };
    assert.match((await fail('take_action', { amount: 1 })) ?? '', /Reset it|Start an episode/);
    await use('start_episode', { seed: 3 });
    assert.match((await fail('take_action', { amount: 99 })) ?? '', /less than or equal to 10/);
    assert.match((await fail('take_action', { amount: 1, session_id: 'nope' })) ?? '', /Unknown session_id/);
    assert.match((await fail('nope', {})) ?? '', /Unknown tool: 'nope'/);
  });
}

test('two clients of the 2025 revisions play sessions of their own without naming them', async (t) => {
  const { url, server } = await startServer(t, counterEnvironment);
  const [one, two] = [await connectClient(t, url, 'legacy'), await connectClient(t, url, 'legacy')];
  await one.use('start_episode', { seed: 1 });
  await two.use('start_episode', { seed: 5 });
  assert.equal((await one.use('take_action', { amount: 1 })).observation.total, 2);
  assert.equal((await two.use('take_action', { amount: 1 })).observation.total, 6);
  assert.notEqual(one.transport.sessionId, two.transport.sessionId);
  assert.ok(server.sessions.find(one.transport.sessionId!));
  await one.transport.terminateSession();
  assert.equal(server.sessions.size, 1);
});

test('an MCP session survives a restart of the server, since it is an environment session', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sessions-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'sessions.db');
  const first = await startServer(t, counterEnvironment, { store: openSqliteStore(path) });
  const before = await connectClient(t, first.url, 'legacy');
  await before.use('start_episode', { seed: 2 });
  await before.use('take_action', { amount: 3 });
  await first.listening.close();
  const second = await startServer(t, counterEnvironment, { store: openSqliteStore(path) });
  const response = await fetch(`${second.url}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-session-id': before.transport.sessionId!,
      'mcp-protocol-version': '2025-06-18',
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'get_state', arguments: {} },
    }),
  });
  assert.equal(response.status, 200);
  assert.match(await response.text(), /\\"total\\":5|"total":5/);
});

test('an unknown mcp-session-id is 404, a missing one on DELETE 400, text that is no JSON 400', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
  const unknown = { ...headers, 'mcp-session-id': 'nope' };
  assert.equal((await fetch(`${url}/mcp`, { method: 'POST', headers: unknown, body })).status, 404);
  assert.equal((await fetch(`${url}/mcp`, { method: 'DELETE', headers: unknown })).status, 404);
  assert.equal((await fetch(`${url}/mcp`, { method: 'DELETE', headers })).status, 400);
  assert.equal((await fetch(`${url}/mcp`, { method: 'POST', headers, body: 'oops' })).status, 400);
  assert.equal((await fetch(`${url}/mcp`, { headers })).status, 405);
});

test('a flood of initialize ends the sessions of the flood, oldest first, and no episode', async (t) => {
  const { url, server } = await startServer(t, counterEnvironment, { maxSessions: 4 });
  const { body } = await postJson(`${url}/reset`, { seed: 3 });
  const headers = { accept: 'application/json, text/event-stream' };
  const client = {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'flood', version: '1' },
  };
  const ids: (string | null)[] = [];
  for (let round = 0; round < 40; round++) {
    const answer = await fetch(`${url}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(request('initialize', client)),
    });
    await answer.text();
    ids.push(answer.headers.get('mcp-session-id'));
    assert.ok(server.sessions.size <= 4);
  }
  const left = [...server.sessions].map(({ id }) => id);
  assert.deepEqual(new Set(left), new Set([body.session_id, ...ids.slice(-3)]));
  const step = await postJson(`${url}/step`, { session_id: body.session_id, action: { amount: 1 } });
  assert.equal(step.body.observation.total, 4);
});

test('a client that finds the server full is told with 503', async (t) => {
  const { url } = await startServer(t, counterEnvironment, { maxSessions: 1 });
  const holder = await openRawSocket(url);
  await assert.rejects(connectClient(t, url, 'legacy'), /at capacity|503/i);
  await holder.close();
});
