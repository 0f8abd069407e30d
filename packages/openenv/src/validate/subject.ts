import { setTimeout as sleep } from 'node:timers/promises';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { WebSocket } from 'ws';
import { baseUrl, socketUrl } from '../client/connect.ts';
import { isJsonObject, type JsonObject } from '../protocol/read-json.ts';
import { at, CheckFailure, NoReplyFailure, shown } from './check.ts';
import { type ForeignSchema, sampleValue } from './sample-value.ts';

export interface InspectionSocketOptions {
  /** Longest wait for a handshake, a reply or a close, ms. */
  readonly timeoutMs: number;
  readonly headers: Readonly<Record<string, string>>;
}

interface Waiter {
  readonly resolve: (text: string) => void;
  readonly reject: (error: Error) => void;
}

/** A socket that sends any message and hands out the replies one at a time. */
export class InspectionSocket {
  readonly #socket: WebSocket;
  readonly #timeoutMs: number;
  readonly #received: string[] = [];
  readonly #waiting: Waiter[] = [];
  /** The code with which the connection was closed, once it is. */
  readonly closed: Promise<number>;
  #closeCode: number | null = null;

  /** @throws CheckFailure when there is no socket to be had. */
  static open(url: string, { timeoutMs, headers }: InspectionSocketOptions): Promise<InspectionSocket> {
    return new Promise((resolve, reject) => {
      const socket = new WebSocket(url, { headers, handshakeTimeout: timeoutMs, perMessageDeflate: false });
      const inspection = new InspectionSocket(socket, timeoutMs);
      socket.once('open', () => resolve(inspection));
      socket.once('unexpected-response', (request, response) => {
        reject(new CheckFailure(`the handshake at ${url} was answered with HTTP ${response.statusCode}`));
        response.resume();
        request.destroy();
      });
      socket.on('error', (error: NodeJS.ErrnoException) =>
        reject(new CheckFailure(`cannot connect to ${url}: ${error.code ?? error.message}`)),
      );
    });
  }

  private constructor(socket: WebSocket, timeoutMs: number) {
    this.#socket = socket;
    this.#timeoutMs = timeoutMs;
    socket.on('message', (data) => {
      const waiter = this.#waiting.shift();
      if (waiter) waiter.resolve(data.toString());
      else this.#received.push(data.toString());
    });
    this.closed = new Promise((resolve) => {
      socket.on('close', (code) => {
        this.#closeCode = code;
        for (const { reject } of this.#waiting.splice(0)) {
          reject(new CheckFailure(`the server closed the connection (code ${code}) instead of answering`));
        }
        resolve(code);
      });
    });
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
  send(message: JsonObject | readonly unknown[] | string | Uint8Array): void {
    if (this.isClosed) {
      throw new CheckFailure('the server closed the connection before it was asked anything');
    }
    const isRaw = typeof message === 'string' || message instanceof Uint8Array;
    this.#socket.send(isRaw ? message : JSON.stringify(message));
  }

  /** The next message. @throws CheckFailure when none comes, or one that is no JSON object. */
  async next(): Promise<JsonObject> {
    const text = this.#received.shift() ?? (await this.#nextText());
    let message: unknown;
    try {
      message = JSON.parse(text);
    } catch {
      throw new CheckFailure(`the server sent what is not JSON: ${text.slice(0, 200)}`);
    }
    if (isJsonObject(message)) return message;
    throw new CheckFailure(`the server sent what is no JSON object: ${shown(message)}`);
  }

  /** Sends a message and waits for the reply. */
  async ask(message: JsonObject | readonly unknown[] | string | Uint8Array): Promise<JsonObject> {
    this.send(message);
    return this.next();
  }

  /** The data of the reply to a message, which must be of a type. @throws CheckFailure */
  async dataOf(message: JsonObject, type: 'observation' | 'state' | 'mcp'): Promise<JsonObject> {
    const reply = await this.ask(message);
    if (reply.type === type && typeof reply.data === 'object' && reply.data !== null) {
      return reply.data as JsonObject;
    }
    throw new CheckFailure(
      `expected a message of type \`${type}\` in reply to \`${String(message.type)}\`, got ${shown(reply)}`,
    );
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

  /** Resolves when the server has answered a ping. */
  ping(): Promise<void> {
    const answered = new Promise<void>((resolve) => this.#socket.once('pong', () => resolve()));
    this.#socket.ping();
    return this.#inTime(answered, 'the server did not answer a ping');
  }

  /** The code with which the server closes. */
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

  #nextText(): Promise<string> {
    if (this.#closeCode !== null) {
      throw new CheckFailure(
        `the server closed the connection (code ${this.#closeCode}) instead of answering`,
      );
    }
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const waiter = { resolve, reject };
    this.#waiting.push(waiter);
    return this.#inTime(promise, 'the server did not answer', () => {
      this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
    });
  }

  async #inTime<T>(promise: Promise<T>, failure: string, abandon: () => void = () => {}): Promise<T> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      abandon();
      reject(new NoReplyFailure(`${failure} within ${this.#timeoutMs / 1000} s`));
    }, this.#timeoutMs);
    try {
      return await Promise.race([promise, late]);
    } finally {
      clearTimeout(timer);
    }
  }
}

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

/** Options of a validation. */
export interface ValidateOptions {
  /** Longest wait for a reply, ms. Default 10,000. */
  readonly timeoutMs?: number;
  /** Sent with every request, as `authorization`. Default none. */
  readonly headers?: Readonly<Record<string, string>>;
  /** A valid action. By default it is made from the schema. */
  readonly action?: JsonObject | undefined;
  /** Options of every reset, beside seed and episode. Default none. */
  readonly resetOptions?: JsonObject;
  /** Most steps of an episode that is played. Default 3. */
  readonly steps?: number;
  /** Most sessions that are opened to find out what a full server says. Default 16. */
  readonly mostSessions?: number;
}

/** The options with their defaults, and the base of `baseUrl`. */
export interface SubjectOptions extends Required<Omit<ValidateOptions, 'action'>> {
  readonly base: URL;
  readonly action: JsonObject | undefined;
}

/** An HTTP answer. */
export interface Answer {
  readonly status: number;
  /** Parsed; `undefined` when it is not JSON. */
  readonly body: unknown;
}

const RETRY_MS = 50;

/** The server that is validated, and what has been learned about it. */
export class Subject {
  readonly options: SubjectOptions;
  readonly #answers = new Map<string, Promise<Answer>>();
  #play: Promise<Play> | undefined;

  constructor(url: string | URL, options: ValidateOptions) {
    const {
      timeoutMs = 10_000,
      headers = {},
      action,
      resetOptions = {},
      steps = 3,
      mostSessions = 16,
    } = options;
    this.options = { base: baseUrl(url), timeoutMs, headers, action, resetOptions, steps, mostSessions };
  }

  /** The answer to a GET, asked once. @throws CheckFailure when there is none. */
  get(path: string): Promise<Answer> {
    const known = this.#answers.get(path);
    if (known) return known;
    const answer = this.fetch(path, { method: 'GET' });
    this.#answers.set(path, answer);
    return answer;
  }

  /** The answer to a POST of JSON, or of text as it is. @throws CheckFailure when there is none. */
  post(path: string, body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return this.fetch(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
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
      throw new CheckFailure(`${init.method} /${path} was not answered: ${reason}`);
    }
  }

  /** The mode by the OpenAPI document: `simulation` has `/reset`, `/step` and `/state`. */
  async mode(): Promise<'simulation' | 'production'> {
    const { body } = await this.get('openapi.json');
    return at(body, 'paths', '/reset') === undefined ? 'production' : 'simulation';
  }

  /** A schema of `GET /schema`. @throws CheckFailure when it is not there. */
  async schema(name: 'action' | 'observation' | 'state'): Promise<ForeignSchema> {
    const schema = at((await this.get('schema')).body, name);
    if (isJsonObject(schema)) return schema;
    throw new CheckFailure(`GET /schema has no schema of the ${name}`);
  }

  /** A schema of the observation after a reset, where the server publishes one of its own. */
  async resetObservationSchema(): Promise<ForeignSchema> {
    const schema = at((await this.get('schema')).body, 'reset_observation');
    return isJsonObject(schema) ? schema : this.schema('observation');
  }

  /** A valid action. @throws CheckFailure when none was given and none can be made. */
  async action(): Promise<JsonObject> {
    if (this.options.action) return this.options.action;
    const schema = await this.schema('action');
    const action = sampleValue(schema);
    if (!isJsonObject(action)) {
      throw new CheckFailure('no action can be made from the schema; give one with --action');
    }
    const flaw = schemaCheck(schema)(action);
    if (flaw === null) return action;
    throw new CheckFailure(`the action made from the schema, ${shown(action)}, is wrong: ${flaw}`);
  }

  /** A socket at `/ws` or `/mcp`. @throws CheckFailure when there is none to be had. */
  connect(path: 'ws' | 'mcp' = 'ws'): Promise<InspectionSocket> {
    return InspectionSocket.open(socketUrl(this.options.base, path).href, this.options);
  }

  /**
   * Uses a socket that has a session, then closes it. A server may need a moment to free the slot of a session that was
   * closed before.
   * @throws CheckFailure when there is none to be had.
   */
  async withSession<T>(use: (socket: InspectionSocket) => Promise<T>): Promise<T> {
    const socket = await this.#openSession();
    try {
      return await use(socket);
    } finally {
      await socket.close();
    }
  }

  /** An episode that was played from beginning to end or for some steps, once. @throws CheckFailure */
  play(): Promise<Play> {
    this.#play ??= this.playAgain();
    return this.#play;
  }

  /** The same episode once more, or that of another seed. @throws CheckFailure */
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
      if (performance.now() > deadline) throw new CheckFailure(`there is no session to be had: ${refusal}`);
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

/** Checks a value by a JSON Schema of a server. Returns the violation, or `null`. */
export type SchemaCheck = (value: unknown) => string | null;

/** Longest schema that is compiled, characters of JSON. */
const MAX_SCHEMA_LENGTH = 1_000_000;

/** Compiles a JSON Schema (draft 2020-12) of a server. @throws Error saying why it is no schema. */
export function schemaCheck(schema: ForeignSchema): SchemaCheck {
  if (JSON.stringify(schema).length > MAX_SCHEMA_LENGTH) {
    throw new Error(`the schema is longer than ${MAX_SCHEMA_LENGTH} characters`);
  }
  // Servers add keywords of their own, as `discriminator`, and formats, which only describe.
  const ajv = new Ajv2020({ strict: false, validateFormats: false, logger: false });
  const validate: ValidateFunction = ajv.compile(schema);
  return (value) => (validate(value) ? null : ajv.errorsText(validate.errors, { dataVar: '' }));
}
