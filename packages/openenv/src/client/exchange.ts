import { WebSocket } from 'ws';
import type { ValidationIssue } from '../protocol/bodies.ts';
import { maskUrls } from '../protocol/mask-urls.ts';
import type {
  ClientMessage,
  ErrorCode,
  ErrorData,
  ServerMessage,
  VectorClientMessage,
  VectorMessage,
} from '../protocol/messages.ts';
import { readJson } from '../protocol/read-json.ts';

/** The server answered with an error. The session is as it was before the request. */
export class ServerError extends Error {
  override readonly name: string = 'ServerError';
  readonly code: ErrorCode;
  /** Issues of the input, with `VALIDATION_ERROR`. */
  readonly issues: readonly ValidationIssue[];
  /** Why the environment refused, for instance `EPISODE_OVER`, where it says so. */
  readonly reason: string | undefined;
  constructor({ message, code, errors = [], reason }: ErrorData) {
    super(`${message} (${code})`);
    this.code = code;
    this.issues = errors;
    this.reason = reason;
  }
}

/** The server has no free session. Try again later, or ask for a higher cap. */
export class CapacityError extends ServerError {
  override readonly name = 'CapacityError';
  readonly activeSessions: number | undefined;
  readonly maxSessions: number | undefined;
  constructor(data: ErrorData) {
    super(data);
    this.activeSessions = data.active_sessions;
    this.maxSessions = data.max_sessions;
  }
}

/** The connection could not be made, or was lost. */
export class ConnectionError extends Error {
  override readonly name: string = 'ConnectionError';
}

/** No reply came in time. The connection is dropped, so that a late reply can never be taken for that of another request. */
export class TimeoutError extends ConnectionError {
  override readonly name = 'TimeoutError';
}

export function serverError(data: ErrorData): ServerError {
  return data.code === 'CAPACITY_REACHED' ? new CapacityError(data) : new ServerError(data);
}

export interface ExchangeOptions {
  readonly headers: Readonly<Record<string, string>>;
  /** ms */
  readonly connectTimeoutMs: number;
  /** ms */
  readonly replyTimeoutMs: number;
  /** bytes */
  readonly maxMessageBytes: number;
}

type Reply = ServerMessage | VectorMessage | Uint8Array;

interface Pending {
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

/** One socket on which every message gets one reply, in order. */
export class Exchange {
  /** The session, when the server named it in the handshake. */
  readonly sessionId: string | undefined;
  readonly #socket: WebSocket;
  readonly #replyTimeoutMs: number;
  readonly #pending: Pending[] = [];
  #lost: Error | undefined;

  /** Connects. @throws ConnectionError, TimeoutError */
  static open(url: string, options: ExchangeOptions): Promise<Exchange> {
    const shown = maskUrls(url);
    return new Promise((resolve, reject) => {
      const socket = new WebSocket(url, {
        headers: options.headers,
        handshakeTimeout: options.connectTimeoutMs,
        maxPayload: options.maxMessageBytes,
        perMessageDeflate: false,
      });
      let sessionId: string | undefined;
      socket.once('upgrade', (response) => {
        const named = response.headers['x-session-id'];
        sessionId = typeof named === 'string' ? named : undefined;
      });
      socket.once('unexpected-response', (_request, response) => {
        response.resume();
        reject(
          new ConnectionError(`Could not connect to ${shown}: the server answered ${response.statusCode}.`),
        );
        socket.terminate();
      });
      socket.once('error', (error) => {
        const late = error.message === 'Opening handshake has timed out';
        reject(
          late
            ? new TimeoutError(`Could not connect to ${shown} within ${options.connectTimeoutMs} ms.`)
            : new ConnectionError(`Could not connect to ${shown}: ${error.message || String(error)}`, {
                cause: error,
              }),
        );
      });
      // The exchange must listen before the first frame, which may come in the same packet as the handshake.
      socket.once('open', () => resolve(new Exchange(socket, sessionId, options.replyTimeoutMs)));
    });
  }

  private constructor(socket: WebSocket, sessionId: string | undefined, replyTimeoutMs: number) {
    this.#socket = socket;
    this.sessionId = sessionId;
    this.#replyTimeoutMs = replyTimeoutMs;
    socket.on('message', (data, isBinary) => {
      if (isBinary) this.#settle(new Uint8Array(data as Buffer));
      else this.#receive(data.toString());
    });
    socket.on('error', (error) => this.#lose(new ConnectionError(`The connection failed: ${error.message}`)));
    socket.on('close', (code, reason) => {
      this.#lose(
        new ConnectionError(
          `The server closed the connection (code ${code}${reason.length > 0 ? `, ${reason}` : ''}).`,
        ),
      );
    });
  }

  /** True while requests can be made. */
  get open(): boolean {
    return this.#lost === undefined;
  }

  /** Sends a message and waits for its reply. @throws ServerError, ConnectionError, TimeoutError */
  request(message: ClientMessage): Promise<ServerMessage>;
  request(message: VectorClientMessage): Promise<VectorMessage>;
  request(message: ClientMessage | VectorClientMessage): Promise<Reply> {
    return this.#send(JSON.stringify(message), message.type);
  }

  /** Sends bytes and waits for bytes. @throws ServerError, ConnectionError, TimeoutError */
  async requestBytes(bytes: Uint8Array): Promise<Uint8Array> {
    return (await this.#send(bytes, 'a binary frame')) as Uint8Array;
  }

  /** Says goodbye and waits for the socket to close. */
  async close(): Promise<void> {
    this.#lose(new ConnectionError('The client was closed.'));
    if (this.#socket.readyState === WebSocket.CLOSED) return;
    const closed = new Promise<void>((resolve) => this.#socket.once('close', () => resolve()));
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify({ type: 'close' }));
    this.#socket.close(1000);
    await closed;
  }

  #send(data: string | Uint8Array, what: string): Promise<Reply> {
    if (this.#lost) return Promise.reject(this.#lost);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#lose(
          new TimeoutError(
            `No reply to \`${what}\` within ${this.#replyTimeoutMs} ms; the connection was dropped.`,
          ),
        );
        this.#socket.terminate();
      }, this.#replyTimeoutMs);
      this.#pending.push({ resolve, reject, timer });
      this.#socket.send(data);
    });
  }

  #receive(text: string): void {
    const reading = readJson(text);
    if (reading.ok) {
      this.#settle(reading.value as ServerMessage);
    } else {
      this.#lose(new ConnectionError(`The server sent what is not JSON: ${reading.message}`));
      this.#socket.terminate();
    }
  }

  #settle(reply: Reply): void {
    const error =
      !(reply instanceof Uint8Array) && reply.type === 'error' ? serverError(reply.data) : undefined;
    const pending = this.#pending.shift();
    if (pending === undefined) {
      // Only a refusal comes unasked; it holds for every request from now on.
      this.#lost ??= error ?? new ConnectionError('The server sent a message without a request for it.');
      return;
    }
    clearTimeout(pending.timer);
    if (error) pending.reject(error);
    else pending.resolve(reply);
  }

  #lose(error: Error): void {
    this.#lost ??= error;
    for (const { reject, timer } of this.#pending.splice(0)) {
      clearTimeout(timer);
      reject(this.#lost);
    }
  }
}
