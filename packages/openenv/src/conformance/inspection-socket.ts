import { WebSocket } from 'ws';
import { isJsonObject, type JsonObject } from '../json/read-json.ts';
import { CheckFailure, NoReplyFailure, shown } from './check.ts';

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
