import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { z } from 'zod';
import { counterEnvironment } from '../fixtures/counter-environment.ts';
import { type LooseJson, openRawSocket } from '../fixtures/raw-socket.ts';
import { postJson, startServer } from '../fixtures/start-server.ts';
import { toolEnvironment } from '../fixtures/tool-environment.ts';
import { defineTool } from '../protocol/definition.ts';
import { openSqliteStore } from '../sessions/sqlite-session-store.ts';
import { createServer } from './create-server.ts';

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

test('in production a tool finds an episode, also for a client without a session', async (t) => {
  const { url } = await startServer(t, toolEnvironment, { mode: 'production' });
  const client = new Client(
    { name: 'test', version: '1' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
  t.after(() => client.close());
  const count = async () =>
    (await client.callTool({ name: 'count_twice', arguments: { amount: 0 } })).structuredContent as LooseJson;
  assert.equal((await count()).actions, 2);
  assert.equal((await count()).actions, 4);
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
