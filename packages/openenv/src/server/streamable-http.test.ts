import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { counterEnvironment } from '../fixtures/counter-environment.ts';
import { type LooseJson, openRawSocket } from '../fixtures/raw-socket.ts';
import { startServer } from '../fixtures/start-server.ts';
import { openSqliteStore } from '../sessions/sqlite-session-store.ts';

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

test('a client that finds the server full is told with 503', async (t) => {
  const { url } = await startServer(t, counterEnvironment, { maxSessions: 1 });
  const holder = await openRawSocket(url);
  await assert.rejects(connectClient(t, url, 'legacy'), /at capacity|503/i);
  await holder.close();
});
