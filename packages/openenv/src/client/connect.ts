import type {
  GradeBody,
  HealthBody,
  MetadataBody,
  SchemaBody,
  StateBody,
  TasksBody,
} from '../protocol/bodies.ts';
import type { EnvironmentDefinition, ResetOptions, StepResult } from '../protocol/definition.ts';
import type {
  JsonRpcResponse,
  ToolCallResult,
  ToolListing,
  VectorOptions,
  VectorStep,
} from '../protocol/messages.ts';
import { ClientError, Exchange } from './exchange.ts';

export { ClientError } from './exchange.ts';

/** Options of `connect`. Every field has a default. */
interface ConnectOptions {
  /** Sent as `authorization: Bearer`. */
  readonly token?: string;
  /** Further headers of the handshake and of HTTP requests. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Take this session up again, from whatever socket holds it, instead of opening one. */
  readonly sessionId?: string;
  /** Longest wait for the connection, ms. Default 10 s. */
  readonly connectTimeoutMs?: number;
  /** Longest wait for a reply, ms. Default 60 s. */
  readonly replyTimeoutMs?: number;
  /** Longest message that is accepted, bytes. Default 100 MiB. */
  readonly maxMessageBytes?: number;
}

/** Any environment, when the type of its definition is not known. */
type AnyDefinition = EnvironmentDefinition<
  Record<string, unknown>,
  Record<string, unknown>,
  Record<string, unknown>
>;

/** What a registered environment makes, or the definition itself. */
type Defined<Given> = Given extends { definition(...options: never): infer Made } ? Made : Given;

type ActionOf<D> = D extends EnvironmentDefinition<infer Action, infer _O, infer _S> ? Action : never;
type ObservationOf<D> =
  D extends EnvironmentDefinition<infer _A, infer Observation, infer _S> ? Observation : never;
type StateOf<D> = D extends EnvironmentDefinition<infer _A, infer _O, infer State> ? State : never;

/**
 * Connects to an OpenEnv server and opens a session. `connect<typeof definition>(url)` types actions, observations and
 * state by an environment's definition, or by an environment of `@servegym/environments`.
 * @throws ClientError, `CAPACITY_REACHED` when the server has no free session
 */
export async function connect<Given = AnyDefinition>(
  url: string | URL,
  options: ConnectOptions = {},
): Promise<
  EnvironmentClient<ActionOf<Defined<Given>>, ObservationOf<Defined<Given>>, StateOf<Defined<Given>>>
> {
  const base = baseUrl(url);
  const headers = { ...options.headers, ...(options.token && { authorization: `Bearer ${options.token}` }) };
  const address = socketUrl(base, 'ws');
  if (options.sessionId) {
    address.searchParams.set('session_id', options.sessionId);
    address.searchParams.set('takeover', 'true');
  }
  const exchange = await Exchange.open(address.href, {
    headers,
    connectTimeoutMs: options.connectTimeoutMs ?? 10_000,
    replyTimeoutMs: options.replyTimeoutMs ?? 60_000,
    maxMessageBytes: options.maxMessageBytes ?? 100 * 1024 * 1024,
  });
  // A server that does not name the session may be about to refuse one: a question, legal at any time, brings it out.
  if (exchange.sessionId === undefined) {
    try {
      await exchange.request({ type: 'state' });
    } catch (error) {
      await exchange.close();
      throw error;
    }
  }
  return new EnvironmentClient(exchange, base, headers);
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
  async reset(options: ResetOptions = {}): Promise<StepResult<Observation>> {
    const reply = await this.#exchange.request({ type: 'reset', data: options });
    return reply.data as unknown as StepResult<Observation>;
  }

  /** Plays one action. @throws ClientError */
  async step(action: Action): Promise<StepResult<Observation>> {
    const reply = await this.#exchange.request({ type: 'step', data: action as Record<string, unknown> });
    return reply.data as unknown as StepResult<Observation>;
  }

  /** The state of the episode. Before the first reset only the two common fields are there. */
  async state(): Promise<StateBody & Partial<State>> {
    const reply = await this.#exchange.request({ type: 'state' });
    return reply.data as StateBody & Partial<State>;
  }

  /**
   * Makes and resets many environments that step together, in place of those of an earlier call. This session's own
   * environment is another. Only our servers can do this.
   * @throws ClientError
   */
  vector(options: VectorOptions): Promise<VectorClient<Action, Observation>> {
    return VectorClient.open(this.#exchange, options);
  }

  /** The tools through which an agent can play this session. */
  async listTools(): Promise<readonly ToolListing[]> {
    const result = (await this.#callMethod('tools/list', {})) as { tools: readonly ToolListing[] };
    return result.tools;
  }

  /** Calls a tool on this session and returns its plain value. */
  async callTool(name: string, args: Readonly<Record<string, unknown>> = {}): Promise<unknown> {
    const result = (await this.#callMethod('tools/call', { name, arguments: args })) as ToolCallResult;
    return result.data;
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
  async grade(): Promise<GradeBody> {
    return this.#fetch('grader', {
      method: 'POST',
      body: JSON.stringify({ session_id: this.sessionId }),
    });
  }

  /** Ends the session. */
  async close(): Promise<void> {
    await this.#exchange.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #callMethod(method: string, params: Readonly<Record<string, unknown>>): Promise<unknown> {
    const reply = await this.#exchange.request({
      type: 'mcp',
      data: { jsonrpc: '2.0', id: 1, method, params },
    });
    const response = reply.data as JsonRpcResponse;
    if ('error' in response && response.error) {
      throw new Error(`${response.error.message} (JSON-RPC ${response.error.code})`);
    }
    return (response as { result: unknown }).result;
  }

  #get<T>(path: string): Promise<T> {
    return this.#fetch(path, { method: 'GET' });
  }

  async #fetch<T>(path: string, init: RequestInit): Promise<T> {
    const url = new URL(path, this.#base);
    const response = await fetch(url, {
      ...init,
      headers: { ...this.#headers, 'content-type': 'application/json' },
    });
    const text = await response.text();
    if (!response.ok) {
      throw ClientError.lost(
        `${init.method} ${url.pathname} answered ${response.status}: ${text.slice(0, 500)}`,
      );
    }
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

/** Many environments of a server that step together, in one message. Made by `EnvironmentClient.vector`. */
class VectorClient<Action, Observation> {
  /** Environments. */
  readonly size: number;
  /** Result of the first reset. */
  readonly first: VectorStep<Observation>;
  /** With `float32`: the names of the numbers of a row. */
  readonly layout: VectorStep['layout'];
  readonly #exchange: Exchange;

  private constructor(exchange: Exchange, first: VectorStep<Observation>) {
    this.#exchange = exchange;
    this.size = first.dones.length;
    this.first = first;
    this.layout = first.layout;
  }

  /** @throws ClientError */
  static async open<Action, Observation>(
    exchange: Exchange,
    options: VectorOptions,
  ): Promise<VectorClient<Action, Observation>> {
    const { data } = await exchange.request({ type: 'vector_reset', data: options });
    return new VectorClient(exchange, data as VectorStep<Observation>);
  }

  /**
   * Plays an action on each environment. One whose episode has ended ignores its action and starts the next episode.
   * @throws ClientError
   */
  async step(actions: readonly Action[]): Promise<VectorStep<Observation>> {
    const { data } = await this.#exchange.request({ type: 'vector_step', data: { actions } });
    return data as VectorStep<Observation>;
  }

  /**
   * The same with rows of float32, as `layout` names them: shapes n x width of the action in, n x width of the observation
   * and n out; dones are 0 or 1. Needs the format `float32`.
   */
  async stepFloats(actions: Float32Array) {
    const { buffer, byteOffset, byteLength } = actions;
    const bytes = await this.#exchange.requestBytes(new Uint8Array(buffer, byteOffset, byteLength));
    const floats = new Float32Array(bytes.buffer);
    return {
      rewards: floats.subarray(0, this.size),
      dones: floats.subarray(this.size, 2 * this.size),
      observations: floats.subarray(2 * this.size),
    };
  }
}
