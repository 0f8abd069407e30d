import { setTimeout as sleep } from 'node:timers/promises';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { WebSocket } from 'ws';
import { baseUrl, ClientError, socketUrl } from '../client/connect.ts';
import { openSocket } from '../client/exchange.ts';
import { isJsonObject, type JsonObject, withDefaults } from '../protocol/read-json.ts';
import { at, shown } from './check.ts';
import { type ForeignSchema, sampleValue } from './sample-value.ts';

/** The seed of episodes that are played, but where another is needed. */
export const SEED = 7;
/** Its label. */
export const EPISODE_ID = 'servegym-validate';

/** Replies of a server while an episode was played. */
export interface Play {
  /** Data of the reply to the reset, then to each step. */
  readonly observations: readonly JsonObject[];
  /** Data of the state after the reset, then after each step. */
  readonly states: readonly JsonObject[];
}

const DEFAULTS = {
  /** Longest wait for a reply, ms. */
  timeoutMs: 10_000,
  /** Sent with every request, as `authorization`. */
  headers: {} as Readonly<Record<string, string>>,
  /** A valid action. By default it is made from the schema. */
  action: undefined as JsonObject | undefined,
  /** Options of every reset, beside seed and episode. */
  resetOptions: {} as JsonObject,
  /** Most steps of an episode that is played. */
  steps: 3,
  /** Most sessions that are opened to find out what a full server says. */
  mostSessions: 16,
};
/** Options of a validation. */
export type ValidateOptions = Partial<Readonly<typeof DEFAULTS>>;

/** An HTTP answer. */
export interface Answer {
  readonly status: number;
  /** Parsed; `undefined` when it is not JSON. */
  readonly body: unknown;
}

const RETRY_MS = 50;

/** The server that is validated, and what has been learned about it. Its methods throw where the server does not play along. */
export class Subject {
  readonly options: Readonly<typeof DEFAULTS> & { readonly base: URL };
  readonly #answers = new Map<string, Promise<Answer>>();
  #play: Promise<Play> | undefined;

  constructor(url: string | URL, options: ValidateOptions) {
    this.options = { base: baseUrl(url), ...withDefaults(DEFAULTS, options) };
  }

  /** The answer to a GET, asked once. */
  get(path: string): Promise<Answer> {
    const answer = this.#answers.get(path) ?? this.fetch(path, { method: 'GET' });
    this.#answers.set(path, answer);
    return answer;
  }

  /** The answer to a POST of JSON, or of text as it is. */
  post(path: string, body: unknown): Promise<Answer> {
    return this.fetch(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  }

  async fetch(path: string, init: RequestInit): Promise<Answer> {
    const { base, timeoutMs, headers } = this.options;
    try {
      const response = await fetch(new URL(path, base), {
        ...init,
        headers: { ...headers, ...(init.headers as Record<string, string>) },
        signal: AbortSignal.timeout(timeoutMs),
      });
      return { status: response.status, body: parsed(await response.text()) };
    } catch (error) {
      const { message, cause } = error as Error;
      const reason = (cause as { code?: string } | undefined)?.code ?? message;
      throw new Error(`${init.method} /${path} was not answered: ${reason}`);
    }
  }

  /** The mode by the OpenAPI document: `simulation` has `/reset`, `/step` and `/state`. */
  async mode(): Promise<'simulation' | 'production'> {
    return (await this.has('/reset')) ? 'simulation' : 'production';
  }

  async has(path: string): Promise<boolean> {
    return at((await this.get('openapi.json')).body, 'paths', path) !== undefined;
  }

  /** The tasks that the server lists; none where it does not list any. */
  async tasks(): Promise<readonly JsonObject[]> {
    const tasks = (await this.has('/tasks')) && at((await this.get('tasks')).body, 'tasks');
    return Array.isArray(tasks) ? tasks.filter(isJsonObject) : [];
  }

  /** @param first of the schemas to look for: the observation after a reset has one of its own on some servers */
  async schema(name: 'action' | 'observation' | 'state', first: string = name): Promise<ForeignSchema> {
    const { body } = await this.get('schema');
    const schema = [at(body, first), at(body, name)].find(isJsonObject);
    if (schema !== undefined) return schema;
    throw new Error(`GET /schema has no schema of the ${name}`);
  }

  async action(): Promise<JsonObject> {
    if (this.options.action) return this.options.action;
    const schema = await this.schema('action');
    const action = sampleValue(schema);
    if (!isJsonObject(action))
      throw new Error('no action can be made from the schema; give one with --action');
    const flaw = schemaCheck(schema)(action);
    if (flaw === null) return action;
    throw new Error(`the action made from the schema, ${shown(action)}, is wrong: ${flaw}`);
  }

  connect(path: 'ws' | 'mcp' = 'ws'): Promise<InspectionSocket> {
    const { base, headers, timeoutMs } = this.options;
    const use = (socket: WebSocket) => new InspectionSocket(socket, timeoutMs);
    return openSocket(socketUrl(base, path).href, { headers, connectTimeoutMs: timeoutMs }, use);
  }

  /**
   * Uses a socket that has a session, then closes it. A server may need a moment to free the slot of a session that was
   * closed before.
   */
  async withSession<T>(use: (socket: InspectionSocket) => Promise<T>): Promise<T> {
    const socket = await this.#openSession();
    try {
      return await use(socket);
    } finally {
      await socket.close();
    }
  }

  /** An episode that was played from beginning to end or for some steps, once. */
  play(): Promise<Play> {
    this.#play ??= this.playAgain();
    return this.#play;
  }

  /** The same episode once more, or that of another seed. */
  async playAgain(seed = SEED): Promise<Play> {
    const { resetOptions, steps } = this.options;
    const action = await this.action();
    return this.withSession(async (socket) => {
      const observations = [await socket.reset({ seed, episode_id: EPISODE_ID, ...resetOptions })];
      const states = [await socket.state()];
      for (let step = 0; step < steps && observations.at(-1)?.done !== true; step++) {
        observations.push(await socket.step(action));
        states.push(await socket.state());
      }
      return { observations, states };
    });
  }

  async #openSession(): Promise<InspectionSocket> {
    const deadline = performance.now() + this.options.timeoutMs;
    for (;;) {
      const socket = await this.connect();
      const refusal = await socket.ask({ type: 'state' }).then(
        (reply) => (reply.type === 'error' ? shown(reply.data) : null),
        (error: Error) => error.message,
      );
      if (refusal === null) return socket;
      await socket.close();
      if (performance.now() > deadline) throw new Error(`there is no session to be had: ${refusal}`);
      await sleep(RETRY_MS);
    }
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Longest schema that is compiled, characters of JSON. */
const MAX_SCHEMA_LENGTH = 1_000_000;

/**
 * Compiles a JSON Schema (draft 2020-12) of a server into a check of values, which answers the violation, or `null`.
 * @throws Error saying why it is no schema
 */
export function schemaCheck(schema: ForeignSchema): (value: unknown) => string | null {
  if (JSON.stringify(schema).length > MAX_SCHEMA_LENGTH) {
    throw new Error(`the schema is longer than ${MAX_SCHEMA_LENGTH} characters`);
  }
  // Servers add keywords of their own, as `discriminator`, and formats, which only describe.
  const ajv = new Ajv2020({ strict: false, validateFormats: false, logger: false });
  const validate: ValidateFunction = ajv.compile(schema);
  return (value) => (validate(value) ? null : ajv.errorsText(validate.errors, { dataVar: '' }));
}

type Message = JsonObject | readonly unknown[] | string | Uint8Array;

/** A socket that sends any message and hands out the replies one at a time. */
export class InspectionSocket {
  readonly #socket: WebSocket;
  readonly #timeoutMs: number;
  readonly #received: string[] = [];
  /** The code with which the connection was closed, once it is. */
  readonly closed: Promise<number>;

  /** @internal Declarations name no type of `ws`. */
  constructor(socket: WebSocket, timeoutMs: number) {
    // A connection that fails is closed.
    socket.on('error', () => {});
    this.#socket = socket;
    this.#timeoutMs = timeoutMs;
    socket.on('message', (data) => this.#received.push(data.toString()));
    this.closed = new Promise((resolve) => socket.on('close', resolve));
  }

  /** True when the connection is closed, or about to be. */
  get isClosed(): boolean {
    return this.#socket.readyState !== WebSocket.OPEN;
  }

  /** Messages that came and were not asked for. */
  get unread(): readonly string[] {
    return this.#received;
  }

  /** Sends an object as JSON, text and bytes as they are. */
  send(message: Message): void {
    if (this.isClosed) throw new Error('the server closed the connection before it was asked anything');
    const isRaw = typeof message === 'string' || message instanceof Uint8Array;
    this.#socket.send(isRaw ? message : JSON.stringify(message));
  }

  /** The next message. @throws Error when none comes, or one that is no JSON object */
  async next(): Promise<JsonObject> {
    if (this.#received.length === 0) {
      const arrived = new Promise<void>((resolve) => this.#socket.once('message', () => resolve()));
      await this.#inTime(Promise.race([arrived, this.closed]), 'the server did not answer');
    }
    const text = this.#received.shift();
    if (text === undefined) {
      const code = await this.closed;
      throw new Error(`the server closed the connection (code ${code}) instead of answering`);
    }
    const message = parsed(text);
    if (message === undefined) throw new Error(`the server sent what is not JSON: ${text.slice(0, 200)}`);
    if (isJsonObject(message)) return message;
    throw new Error(`the server sent what is no JSON object: ${shown(message)}`);
  }

  async ask(message: Message): Promise<JsonObject> {
    this.send(message);
    return this.next();
  }

  /** The data of the reply to a message, which must be of a type. */
  async dataOf(message: JsonObject, type: 'observation' | 'state' | 'mcp'): Promise<JsonObject> {
    const reply = await this.ask(message);
    if (reply.type === type && typeof reply.data === 'object' && reply.data !== null) {
      return reply.data as JsonObject;
    }
    const asked = String(message.type);
    throw new Error(`expected a message of type \`${type}\` in reply to \`${asked}\`, got ${shown(reply)}`);
  }

  reset(data: JsonObject): Promise<JsonObject> {
    return this.dataOf({ type: 'reset', data }, 'observation');
  }

  step(data: JsonObject): Promise<JsonObject> {
    return this.dataOf({ type: 'step', data }, 'observation');
  }

  state(): Promise<JsonObject> {
    return this.dataOf({ type: 'state' }, 'state');
  }

  ping(): Promise<void> {
    const answered = new Promise<void>((resolve) => this.#socket.once('pong', () => resolve()));
    this.#socket.ping();
    return this.#inTime(answered, 'the server did not answer a ping');
  }

  closedByServer(): Promise<number> {
    return this.#inTime(this.closed, 'the server did not close the connection');
  }

  /** Says goodbye and waits until the connection is closed, by force if need be. */
  async close(): Promise<void> {
    if (!this.isClosed) this.#socket.send('{"type":"close"}');
    this.#socket.close(1000);
    await this.closedByServer().catch(() => this.#socket.terminate());
  }

  /** Goes away without a word, as a crashed client does. */
  async vanish(): Promise<void> {
    this.#socket.terminate();
    await this.closed;
  }

  async #inTime<T>(promise: Promise<T>, failure: string): Promise<T> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const problem = `${failure} within ${this.#timeoutMs / 1000} s`;
    const timer = setTimeout(() => reject(new ClientError('TIMEOUT', problem)), this.#timeoutMs);
    return Promise.race([promise, late]).finally(() => clearTimeout(timer));
  }
}
