import type { EnvironmentDefinition, ResetOptions, StepResult } from '../protocol/definition.ts';
import type {
  GradeBody,
  HealthBody,
  JsonRpcResponse,
  MetadataBody,
  SchemaBody,
  StateBody,
  TasksBody,
} from '../protocol/messages.ts';
import type { JsonObject } from '../protocol/read-json.ts';
import type { ToolListing, toolCallResult } from '../server/tools.ts';
import { ClientError, type ConnectOptions, Exchange, openSocket } from './exchange.ts';

export { ClientError } from './exchange.ts';

/** The client of an environment by its definition, or by a registered environment, which makes one. */
type ClientOf<Given> = Given extends { definition(...options: never): infer Made }
  ? ClientOf<Made>
  : Given extends EnvironmentDefinition<infer Action, infer Observation, infer State>
    ? EnvironmentClient<Action, Observation, State>
    : never;

/**
 * Connects to an OpenEnv server and opens a session. `connect<typeof definition>(url)` types actions, observations and
 * state by an environment's definition, or by an environment of `@servegym/environments`.
 * @throws ClientError, `CAPACITY_REACHED` when the server has no free session
 */
export async function connect<Given = EnvironmentDefinition<JsonObject, JsonObject, JsonObject>>(
  url: string | URL,
  options: ConnectOptions = {},
): Promise<ClientOf<Given>> {
  const { token, sessionId, replyTimeoutMs = 60_000 } = options;
  const base = baseUrl(url);
  const headers = { ...options.headers, ...(token && { authorization: `Bearer ${token}` }) };
  const address = socketUrl(base, 'ws');
  if (sessionId) {
    address.searchParams.set('session_id', sessionId);
    address.searchParams.set('takeover', 'true');
  }
  const exchange = await openSocket(
    address.href,
    { ...options, headers },
    (socket, named) => new Exchange(socket, named, replyTimeoutMs),
  );
  // A server that does not name the session may be about to refuse one: a question, legal at any time, brings it out.
  if (exchange.sessionId === undefined) {
    try {
      await exchange.request('state');
    } catch (error) {
      await exchange.close();
      throw error;
    }
  }
  return new EnvironmentClient(exchange, base, headers) as ClientOf<Given>;
}

/** One session on an OpenEnv server. Made by `connect`. */
export class EnvironmentClient<Action, Observation, State> {
  readonly #exchange: Exchange;
  readonly #base: URL;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(exchange: Exchange, base: URL, headers: Readonly<Record<string, string>>) {
    this.#exchange = exchange;
    this.#base = base;
    this.#headers = headers;
  }

  /** The id of the session, when the server tells it: ours do. */
  get sessionId(): string | undefined {
    return this.#exchange.sessionId;
  }

  /** True while the connection stands. */
  get connected(): boolean {
    return this.#exchange.open;
  }

  /** Starts a new episode. @throws ClientError */
  reset(options: ResetOptions = {}): Promise<StepResult<Observation>> {
    return this.#exchange.request('reset', options);
  }

  /** Plays one action. @throws ClientError */
  step(action: Action): Promise<StepResult<Observation>> {
    return this.#exchange.request('step', action as object);
  }

  /** The state of the episode. Before the first reset only the two common fields are there. */
  state(): Promise<StateBody & Partial<State>> {
    return this.#exchange.request('state');
  }

  /** The tools through which an agent can play this session. */
  async listTools(): Promise<readonly ToolListing[]> {
    return (await this.#callMethod<{ tools: readonly ToolListing[] }>('tools/list', {})).tools;
  }

  /** Calls a tool on this session and returns its plain value. */
  async callTool(name: string, args: Readonly<Record<string, unknown>> = {}): Promise<unknown> {
    const params = { name, arguments: args };
    return (await this.#callMethod<ReturnType<typeof toolCallResult>>('tools/call', params)).data;
  }

  /** `GET /health`: whether the server takes sessions. */
  health(): Promise<HealthBody> {
    return this.#get('health');
  }

  /** `GET /metadata`: what the environment is. */
  metadata(): Promise<MetadataBody> {
    return this.#get('metadata');
  }

  /** `GET /schema`: JSON schemas of action, observation and state. */
  schema(): Promise<SchemaBody> {
    return this.#get('schema');
  }

  /** `GET /tasks`: the tasks of the environment. */
  tasks(): Promise<TasksBody> {
    return this.#get('tasks');
  }

  /** Grades what was played in this session's episode. */
  grade(): Promise<GradeBody> {
    return this.#fetch('grader', { method: 'POST', body: JSON.stringify({ session_id: this.sessionId }) });
  }

  /** Ends the session. */
  async close(): Promise<void> {
    await this.#exchange.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #callMethod<Result>(method: string, params: object): Promise<Result> {
    const request = { jsonrpc: '2.0', id: 1, method, params };
    const response = await this.#exchange.request<JsonRpcResponse>('mcp', request);
    // Other servers have both keys in every response, of which one is null.
    if ('error' in response && response.error) {
      throw new Error(`${response.error.message} (JSON-RPC ${response.error.code})`);
    }
    return (response as { result: Result }).result;
  }

  #get<T>(path: string): Promise<T> {
    return this.#fetch(path, { method: 'GET' });
  }

  async #fetch<T>(path: string, init: RequestInit): Promise<T> {
    const url = new URL(path, this.#base);
    const headers = { ...this.#headers, 'content-type': 'application/json' };
    const response = await fetch(url, { ...init, headers });
    const text = await response.text();
    const answered = `${init.method} ${url.pathname} answered ${response.status}`;
    if (!response.ok) throw ClientError.lost(`${answered}: ${text.slice(0, 500)}`);
    return JSON.parse(text) as T;
  }
}

/** The HTTP URL under which a server's paths stand. Takes `http(s)` and `ws(s)` URLs, with or without a slash at the end. */
export function baseUrl(url: string | URL): URL {
  const base = new URL(url);
  base.protocol = base.protocol.replace(/^ws/, 'http');
  if (!base.pathname.endsWith('/')) base.pathname += '/';
  base.search = '';
  base.hash = '';
  return base;
}

/** URL of a WebSocket of a server. `base` is that of `baseUrl`. */
export function socketUrl(base: URL, path: 'ws' | 'mcp'): URL {
  const url = new URL(path, base);
  url.protocol = base.protocol === 'https:' ? 'wss:' : 'ws:';
  return url;
}
