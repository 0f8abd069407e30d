import { setTimeout as sleep } from 'node:timers/promises';
import { isJsonObject, type JsonObject } from '../json/read-json.ts';
import { at, type Check, CheckFailure, failed, notApplicable, shown, unless } from './check.ts';
import type { Answer, Subject } from './subject.ts';

const METHOD_NOT_FOUND = -32601;
const PARSE_ERROR = -32700;
const INTERNAL_ERROR = -32603;
const SERVER_ERROR = -32000;
const RETRY_MS = 50;
const TOOLS_LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };

/** Tools over JSON-RPC, OpenEnv's and that of the Model Context Protocol, and the Task API. */
export const MCP_CHECKS: readonly Check[] = [
  {
    id: 'mcp_errors',
    description: 'POST /mcp answers bad JSON and unknown methods with 200 and the JSON-RPC error',
    required: true,
    async run(subject) {
      const unknown = await subject.post('mcp', { jsonrpc: '2.0', id: 5, method: 'nope' });
      const broken = await subject.post('mcp', '{');
      const actual = [unknown, broken].map(({ status, body }) => [status, at(body, 'error', 'code')]);
      const expected = [
        [200, METHOD_NOT_FOUND],
        [200, PARSE_ERROR],
      ];
      const passed = JSON.stringify(actual) === JSON.stringify(expected) && at(unknown.body, 'id') === 5;
      return { passed, expected, actual };
    },
  },
  {
    id: 'mcp_tools_list',
    description: 'Tools are listed with their name and the schema of what they take',
    required: false,
    async run(subject) {
      const { body } = await subject.post('mcp', TOOLS_LIST);
      if (at(body, 'error', 'code') === INTERNAL_ERROR) return notApplicable('the environment has no tools');
      const tools = at(body, 'result', 'tools');
      if (!Array.isArray(tools)) return failed(`got ${shown(body)}`);
      const wrong = tools.find((tool) => !isTool(tool));
      return wrong
        ? failed(`got the tool ${shown(wrong)}`)
        : { passed: true, details: `${tools.length} tools` };
    },
  },
  {
    id: 'mcp_sessions',
    description: 'openenv/session/create and openenv/session/close open and end a session',
    required: false,
    async run(subject) {
      const created = await call(subject, 'openenv/session/create', {});
      const id = at(created.body, 'result', 'session_id');
      if (typeof id !== 'string') return failed(`create was answered with ${shown(created.body)}`);
      const closed = await call(subject, 'openenv/session/close', { session_id: id });
      if (at(closed.body, 'result', 'closed') !== true) {
        return failed(`close was answered with ${shown(closed.body)}`);
      }
      const again = await call(subject, 'openenv/session/close', { session_id: id });
      return unless(at(again.body, 'error') === undefined && 'a session that was closed can be closed again');
    },
  },
  {
    id: 'mcp_websocket',
    description: 'The WebSocket /mcp answers JSON-RPC',
    required: true,
    async run(subject) {
      const reply = await askUntilRoom(subject);
      const fits = reply.jsonrpc === '2.0' && reply.id === 1 && ('result' in reply || 'error' in reply);
      return unless(fits ? null : `got ${shown(reply)}`);
    },
  },
  {
    id: 'mcp_on_session',
    description: 'A session over /ws takes JSON-RPC in messages of type mcp',
    required: true,
    async inSession(socket) {
      const data = await socket.dataOf({ type: 'mcp', data: TOOLS_LIST }, 'mcp');
      return unless(data.jsonrpc === '2.0' && data.id === 1 ? null : `got ${shown(data)}`);
    },
  },
  {
    id: 'mcp_streamable_http',
    description: 'Stock clients of the Model Context Protocol can connect to /mcp (Streamable HTTP)',
    required: false,
    async run(subject) {
      const params = {
        protocolVersion: '2025-06-18',
        capabilities: {},
        clientInfo: { name: 'servegym-validate', version: '1' },
      };
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
      const text = await streamedAnswer(subject, body);
      return unless(
        text.includes('"protocolVersion"') ? null : `initialize was answered with ${text.slice(0, 200)}`,
      );
    },
  },
  {
    id: 'task_api',
    description: 'The Task API lists the environment and its splits',
    required: false,
    async run(subject) {
      const { status, body } = await subject.get('list_environments');
      if (status === 404) return notApplicable('the server has no Task API');
      if (!Array.isArray(body) || typeof body[0] !== 'string') return failed(`got ${status} ${shown(body)}`);
      const splits = await subject.get(`${encodeURIComponent(body[0])}/splits`);
      if (splits.status === 501) return { passed: true, details: 'the environment has no splits' };
      const fits =
        Array.isArray(splits.body) && splits.body.every((split) => typeof at(split, 'name') === 'string');
      return unless(fits ? null : `the splits are ${splits.status} ${shown(splits.body)}`);
    },
  },
];

function call(subject: Subject, method: string, params: JsonObject): Promise<Answer> {
  return subject.post('mcp', { jsonrpc: '2.0', id: 1, method, params });
}

function isTool(tool: unknown): boolean {
  const schema = at(tool, 'input_schema') ?? at(tool, 'inputSchema');
  return typeof at(tool, 'name') === 'string' && isJsonObject(schema);
}

/** The first message on a WebSocket `/mcp`; a server may need a moment to free the place of a session before it. */
async function askUntilRoom(subject: Subject): Promise<JsonObject> {
  const deadline = performance.now() + subject.options.timeoutMs;
  for (;;) {
    const socket = await subject.connect('mcp');
    try {
      const reply = await socket.ask(TOOLS_LIST);
      if (at(reply, 'error', 'code') !== SERVER_ERROR || performance.now() > deadline) return reply;
    } catch (error) {
      if (!(error instanceof CheckFailure) || performance.now() > deadline) throw error;
    } finally {
      await socket.vanish();
    }
    await sleep(RETRY_MS);
  }
}

/** The answer of a POST to `/mcp` for a client that takes a stream: the first event, or the whole body. */
async function streamedAnswer(subject: Subject, body: string): Promise<string> {
  const { base, headers, timeoutMs } = subject.options;
  const response = await fetch(new URL('mcp', base), {
    method: 'POST',
    headers: {
      ...headers,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body,
    signal: AbortSignal.timeout(timeoutMs),
  });
  const session = response.headers.get('mcp-session-id');
  let text = '';
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    if (text.includes('"result"') && text.includes('\n\n')) break;
  }
  if (session) await subject.fetch('mcp', { method: 'DELETE', headers: { 'mcp-session-id': session } });
  return text;
}
