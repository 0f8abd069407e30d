import { setTimeout as sleep } from 'node:timers/promises';
import { JSON_RPC_ERROR_CODES } from '../protocol/messages.ts';
import { isJsonObject, type JsonObject } from '../protocol/read-json.ts';
import { at, type Checks, compared, inSession, notApplicable, shown } from './check.ts';
import { type Answer, EPISODE_ID, type Subject } from './subject.ts';

/** Checks of episodes over HTTP, which a server in production does not have. */
export const HTTP_SESSION_CHECKS: Checks = {
  http_reset: async (subject) =>
    observationFlaw(await subject.post('reset', { seed: 1, ...subject.options.resetOptions })) ??
    observationFlaw(await subject.fetch('reset', { method: 'POST' })),
  http_step: async (subject) => {
    const reset = await subject.post('reset', subject.options.resetOptions);
    const answer = await subject.post('step', stepBody(reset, await subject.action()));
    return answer.status === 409 ? null : observationFlaw(answer);
  },
  http_state: async (subject) => {
    const { status, body } = await subject.fetch('state', { method: 'GET' });
    const fits = status === 200 && isJsonObject(body) && 'episode_id' in body && 'step_count' in body;
    return fits ? null : `got ${status} ${shown(body)}`;
  },
  http_stateful: async (subject) => {
    const body = { episode_id: EPISODE_ID, ...subject.options.resetOptions };
    const reset = await subject.post('reset', body);
    const session = at(reset.body, 'session_id');
    await subject.post('step', stepBody(reset, await subject.action()));
    const query = typeof session === 'string' ? `?session_id=${encodeURIComponent(session)}` : '';
    const { body: state } = await subject.fetch(`state${query}`, { method: 'GET' });
    const actual = { episode_id: at(state, 'episode_id'), step_count: at(state, 'step_count') };
    return compared({ episode_id: EPISODE_ID, step_count: 1 }, actual);
  },
  grades_inside: async (subject) => {
    if (!(await subject.has('/grader'))) return notApplicable('the environment has no grader');
    const tasks = await subject.tasks();
    for (const task of tasks.length > 0 ? tasks : [{ id: undefined, default_action: undefined }]) {
      const reset = { seed: 0, task_id: task.id, ...subject.options.resetOptions };
      const answer = await subject.post('reset', reset);
      const action = isJsonObject(task.default_action) ? task.default_action : await subject.action();
      await subject.post('step', stepBody(answer, action));
      const session = { session_id: at(answer.body, 'session_id') };
      const grade = await subject.post('grader', session).catch((error: Error) => error);
      // Anchors of the same traffic may have to be computed first.
      if (grade instanceof Error) return notApplicable(grade.message);
      const score = at(grade.body, 'score');
      if (!(typeof score === 'number' && score > 0 && score < 1))
        return `task ${shown(task.id)}: expected a score inside (0, 1), got ${grade.status} ${shown(grade.body)}`;
    }
    return null;
  },
  http_validation_errors: async (subject) => {
    const answers = {
      'POST /step {}': await subject.post('step', {}),
      'POST /step {': await subject.post('step', '{'),
      'POST /reset {"seed":-1}': await subject.post('reset', { seed: -1 }),
    };
    const wrong = Object.entries(answers).find(([, answer]) => !isValidationError(answer));
    return wrong && `${wrong[0]} was answered with ${wrong[1].status} ${shown(wrong[1].body)}`;
  },
  http_unknown_action_key_refused: async (subject) => {
    if ((await subject.schema('action')).additionalProperties !== false) {
      return notApplicable('the action schema allows further keys');
    }
    const action = { ...(await subject.action()), unknown_key_of_servegym: 1 };
    const answer = await subject.post('step', { action });
    return isValidationError(answer) ? null : `got ${answer.status} ${shown(answer.body)}`;
  },
};

/** The body of a step: with the session, where the server names it. */
function stepBody({ body }: Answer, action: JsonObject): JsonObject {
  const session = at(body, 'session_id');
  return typeof session === 'string' ? { action, session_id: session } : { action };
}

function observationFlaw({ status, body }: Answer): string | null {
  const fits =
    status === 200 && isJsonObject(at(body, 'observation')) && typeof at(body, 'done') === 'boolean';
  return fits ? null : `got ${status} ${shown(body)}`;
}

function isValidationError({ status, body }: Answer): boolean {
  const detail = at(body, 'detail');
  return status === 422 && Array.isArray(detail) && detail.length > 0;
}

/** The criteria of `openenv validate --url`, with its ids and its judgement. */
export const HTTP_CRITERIA: Checks = {
  openapi_version_available: (subject) => judge(subject, 'openapi.json', { 'info.version': 'string' }),
  health_endpoint: async (subject) => {
    const { status, body } = await subject.get('health');
    const actual = { status_code: status, status: at(body, 'status') ?? null };
    return compared({ status_code: 200, status: 'healthy' }, actual);
  },
  metadata_endpoint: (subject) => judge(subject, 'metadata', { name: 'string', description: 'string' }),
  schema_endpoint: (subject) =>
    judge(subject, 'schema', { action: 'object', observation: 'object', state: 'object' }),
  mcp_endpoint: async (subject) => {
    const { status, body } = await subject.post('mcp', {});
    const actual = { status_code: status, jsonrpc: at(body, 'jsonrpc') ?? null };
    return compared({ status_code: 200, jsonrpc: '2.0' }, actual);
  },
  mode_endpoint_consistency: async (subject) => {
    const paths = at((await subject.get('openapi.json')).body, 'paths');
    if (!isJsonObject(paths) || Object.keys(paths).length === 0) {
      return 'Cannot determine mode without OpenAPI paths';
    }
    const [reset, step, state] = ['/reset', '/step', '/state'].map((path) => path in paths);
    const actual = { '/reset': reset, '/step': step, '/state': state };
    return compared({ '/reset': reset, '/step': reset, '/state': reset }, actual);
  },
};

/** Requires a path to answer 200 with fields of these types. */
async function judge(subject: Subject, path: string, fields: Readonly<Record<string, 'string' | 'object'>>) {
  const { status, body } = await subject.get(path);
  const actual: Record<string, unknown> = { status_code: status };
  for (const field of Object.keys(fields)) {
    const value = at(body, ...field.split('.'));
    const kind = Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value;
    actual[field] = value === undefined ? 'missing' : kind;
  }
  return compared({ status_code: 200, ...fields }, actual);
}

const { methodNotFound, parseError, internalError, serverError } = JSON_RPC_ERROR_CODES;
const RETRY_MS = 50;
const TOOLS_LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };

/** Tools over JSON-RPC, OpenEnv's and that of the Model Context Protocol, and the Task API. */
export const MCP_CHECKS: Checks = {
  mcp_errors: async (subject) => {
    const unknown = await subject.post('mcp', { jsonrpc: '2.0', id: 5, method: 'nope' });
    const broken = await subject.post('mcp', '{');
    const expected = [methodNotFound, parseError].map((code) => [200, code]);
    const actual = [unknown, broken].map(({ status, body }) => [status, at(body, 'error', 'code')]);
    return compared([...expected, 5], [...actual, at(unknown.body, 'id')]);
  },
  mcp_tools_list: async (subject) => {
    const { body } = await subject.post('mcp', TOOLS_LIST);
    if (at(body, 'error', 'code') === internalError) return notApplicable('the environment has no tools');
    const tools = at(body, 'result', 'tools');
    if (!Array.isArray(tools)) return `got ${shown(body)}`;
    const wrong = tools.find((tool) => !isTool(tool));
    return wrong ? `got the tool ${shown(wrong)}` : { passed: true, details: `${tools.length} tools` };
  },
  mcp_sessions: async (subject) => {
    const call = (action: 'create' | 'close', params: JsonObject) =>
      subject.post('mcp', { jsonrpc: '2.0', id: 1, method: `openenv/session/${action}`, params });
    const created = await call('create', {});
    const id = at(created.body, 'result', 'session_id');
    if (typeof id !== 'string') return `create was answered with ${shown(created.body)}`;
    const { body } = await call('close', { session_id: id });
    if (at(body, 'result', 'closed') !== true) return `close was answered with ${shown(body)}`;
    const again = await call('close', { session_id: id });
    return at(again.body, 'error') === undefined && 'a session that was closed can be closed again';
  },
  mcp_websocket: async (subject) => {
    const reply = await askUntilRoom(subject);
    const fits = reply.jsonrpc === '2.0' && reply.id === 1 && ('result' in reply || 'error' in reply);
    return fits ? null : `got ${shown(reply)}`;
  },
  mcp_on_session: inSession(async (socket) => {
    const data = await socket.dataOf({ type: 'mcp', data: TOOLS_LIST }, 'mcp');
    return data.jsonrpc === '2.0' && data.id === 1 ? null : `got ${shown(data)}`;
  }),
  mcp_streamable_http: async (subject) => {
    const params = {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'servegym-validate', version: '1' },
    };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
    const text = await streamedAnswer(subject, body);
    return text.includes('"protocolVersion"') ? null : `initialize was answered with ${text.slice(0, 200)}`;
  },
  task_api: async (subject) => {
    const { status, body } = await subject.get('list_environments');
    if (status === 404) return notApplicable('the server has no Task API');
    if (!Array.isArray(body) || typeof body[0] !== 'string') return `got ${status} ${shown(body)}`;
    const splits = await subject.get(`${encodeURIComponent(body[0])}/splits`);
    if (splits.status === 501) return { passed: true, details: 'the environment has no splits' };
    const fits =
      Array.isArray(splits.body) && splits.body.every((split) => typeof at(split, 'name') === 'string');
    return fits ? null : `the splits are ${splits.status} ${shown(splits.body)}`;
  },
};

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
      if (at(reply, 'error', 'code') !== serverError || performance.now() > deadline) return reply;
    } catch (error) {
      if (performance.now() > deadline) throw error;
    } finally {
      await socket.vanish();
    }
    await sleep(RETRY_MS);
  }
}

/** The answer of a POST to `/mcp` for a client that takes a stream: the first event, or the whole body. */
async function streamedAnswer(subject: Subject, body: string): Promise<string> {
  const { base, headers, timeoutMs } = subject.options;
  const accept = 'application/json, text/event-stream';
  const response = await fetch(new URL('mcp', base), {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', accept },
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
