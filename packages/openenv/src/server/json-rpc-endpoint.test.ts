import assert from 'node:assert/strict';
import { test } from 'node:test';
import { counterEnvironment } from '../fixtures/counter-environment.ts';
import { openRawSocket } from '../fixtures/raw-socket.ts';
import { postJson, startServer } from '../fixtures/start-server.ts';

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
