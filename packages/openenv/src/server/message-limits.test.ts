import assert from 'node:assert/strict';
import { test } from 'node:test';
import { counterEnvironment } from '../fixtures/counter-environment.ts';
import { openRawSocket } from '../fixtures/raw-socket.ts';
import { postJson, startServer } from '../fixtures/start-server.ts';
import { MAX_JSON_DEPTH, MAX_KEYS_OF_OBJECT } from '../json/read-json.ts';

function nested(depth: number): string {
  return '['.repeat(depth) + ']'.repeat(depth);
}

function keys(count: number): string {
  return `{${Array.from({ length: count }, (_, i) => `"k${i}": "\\"}{"`).join(',')}}`;
}

/** Texts over a limit, each inside a message that is otherwise in order. */
const OVER = [
  { value: nested(MAX_JSON_DEPTH + 1), message: /nested at most 512 deep/ },
  { value: nested(200_000), message: /nested at most 512 deep/ },
  { value: keys(MAX_KEYS_OF_OBJECT + 1), message: /at most 1000 keys/ },
  {
    value: `[${Array.from({ length: 60 }, () => keys(900)).join(',')}]`,
    message: /at most 50000 keys in all/,
  },
];

test('over HTTP, bodies with too many keys or too deep are 422 and long ones 413, each with a code', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  for (const { value, message } of OVER) {
    for (const path of ['/reset', '/step', '/grader']) {
      const { status, body } = await postJson(`${url}${path}`, `{"more":${value}}`);
      assert.equal(status, 422, path);
      const [issue] = body.detail as { type: string; ctx: { error: string } }[];
      assert.equal(issue?.type, 'json_over_limit');
      assert.match(issue.ctx.error, message);
    }
  }
  const long = await postJson(`${url}/reset`, `{"more":"${'x'.repeat(1024 * 1024)}"}`);
  assert.deepEqual([long.status, long.body.code], [413, 'BODY_TOO_LONG']);
});

test('what is just within the limits is answered as any other input', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const wide = `[${Array(2 * MAX_JSON_DEPTH).fill('[{}]')}]`;
  for (const value of [nested(MAX_JSON_DEPTH - 2), keys(MAX_KEYS_OF_OBJECT), wide]) {
    const { status } = await postJson(`${url}/reset`, `{"more":${value}}`);
    assert.equal(status, 200);
    const wrong = await postJson(`${url}/step`, `{"action":{"amount":${value}}}`);
    assert.equal(wrong.status, 422);
  }
});

test('over a WebSocket, such messages are errors and the session goes on', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const socket = await openRawSocket(url);
  await socket.ask({ type: 'reset', data: { seed: 1 } });
  for (const { value, message } of OVER) {
    for (const type of ['step', 'reset', 'vector_reset', 'vector_step', 'mcp']) {
      socket.send(`{"type":"${type}","data":{"more":${value}}}`);
      const { type: kind, data } = await socket.next();
      assert.deepEqual([kind, data.code], ['error', 'INVALID_JSON']);
      assert.match(data.message, message);
    }
  }
  assert.equal((await socket.ask({ type: 'step', data: { amount: 1 } })).data.observation.total, 2);
  await socket.close();
});

test('over MCP and JSON-RPC, such requests are parse errors', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const socket = await openRawSocket(url, '/mcp');
  for (const { value, message } of OVER) {
    const request = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${value}}`;
    const plain = await postJson(`${url}/mcp`, request);
    const streamed = await postJson(`${url}/mcp`, request, { accept: 'application/json, text/event-stream' });
    socket.send(request);
    for (const { error } of [plain.body, streamed.body, await socket.next()]) {
      assert.equal(error.code, -32700);
      assert.match(error.message, message);
    }
    assert.equal(streamed.status, 400);
  }
  await socket.close();
});
