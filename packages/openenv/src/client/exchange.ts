import { WebSocket } from 'ws';
import { maskUrls } from '../protocol/mask-urls.ts';
import type { ErrorCode, ErrorData, MessageType, ValidationIssue } from '../protocol/messages.ts';
import { readJson } from '../protocol/read-json.ts';

/**
 * A request that failed. With a code of the server the session is as it was before the request; a client whose connection
 * was lost, or whose server did not reply in time, cannot be used any more.
 */
export class ClientError extends Error {
  override readonly name = 'ClientError';
  readonly code: ErrorCode | 'CONNECTION_LOST' | 'TIMEOUT';
  /** Issues of the input, with `VALIDATION_ERROR`. */
  readonly issues: readonly ValidationIssue[];
  /** Why the environment refused, for instance `EPISODE_OVER`, where it says so. */
  readonly reason: string | undefined;
  /** With `CAPACITY_REACHED`: try again later, or ask for a higher cap. */
  readonly activeSessions: number | undefined;
  readonly maxSessions: number | undefined;

  constructor(
    code: ClientError['code'],
    message: string,
    { errors = [], reason, active_sessions, max_sessions, cause }: Partial<ErrorData> & ErrorOptions = {},
  ) {
    super(message, { cause });
    this.code = code;
    this.issues = errors;
    this.reason = reason;
    this.activeSessions = active_sessions;
    this.maxSessions = max_sessions;
  }

  static lost(message: string, cause?: unknown): ClientError {
    return new ClientError('CONNECTION_LOST', message, { cause });
  }
}

/** Options of `connect`. Every field has a default. */
export interface ConnectOptions {
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

type Reply = { readonly type: string; readonly data: unknown };

/**
 * Opens a WebSocket. `use` gets it before its first frame, which may come in the same packet as the handshake, and the
 * session that the server names, where it does.
 * @throws ClientError `CONNECTION_LOST`, `TIMEOUT`
 * @internal Declarations name no type of `ws`: who installs the package does not have them.
 */
export function openSocket<Used>(
  url: string,
  { headers, connectTimeoutMs = 10_000, maxMessageBytes: maxPayload = 100 * 1024 * 1024 }: ConnectOptions,
  use: (socket: WebSocket, sessionId: string | undefined) => Used,
): Promise<Used> {
  const failure = `Could not connect to ${maskUrls(url)}`;
  return new Promise((resolve, reject) => {
    const handshake = { headers, handshakeTimeout: connectTimeoutMs, maxPayload, perMessageDeflate: false };
    const socket = new WebSocket(url, handshake);
    let sessionId: string | undefined;
    socket.once('upgrade', ({ headers: { 'x-session-id': named } }) => {
      sessionId = typeof named === 'string' ? named : undefined;
    });
    socket.once('unexpected-response', (_request, response) => {
      response.resume();
      reject(ClientError.lost(`${failure}: the server answered ${response.statusCode}.`));
      socket.terminate();
    });
    socket.once('error', (error) => {
      const isLate = error.message === 'Opening handshake has timed out';
      if (isLate) reject(new ClientError('TIMEOUT', `${failure} within ${connectTimeoutMs} ms.`));
      else reject(ClientError.lost(`${failure}: ${error.message || String(error)}`, error));
    });
    socket.once('open', () => resolve(use(socket, sessionId)));
  });
}

/** One socket on which every message gets one reply, in order. */
export class Exchange {
  /** The session, when the server named it in the handshake. */
  readonly sessionId: string | undefined;
  readonly #socket: WebSocket;
  readonly #replyTimeoutMs: number;
  readonly #pending: (PromiseWithResolvers<Reply> & { readonly timer: NodeJS.Timeout })[] = [];
  #lost: ClientError | undefined;

  /** @internal As `openSocket`. */
  constructor(socket: WebSocket, sessionId: string | undefined, replyTimeoutMs: number) {
    this.#socket = socket;
    this.sessionId = sessionId;
    this.#replyTimeoutMs = replyTimeoutMs;
    socket.on('message', (data) => this.#receive(data.toString()));
    socket.on('error', ({ message }) => this.#lose(ClientError.lost(`The connection failed: ${message}`)));
    socket.on('close', (code, reason) => {
      const why = reason.length > 0 ? `, ${reason}` : '';
      this.#lose(ClientError.lost(`The server closed the connection (code ${code}${why}).`));
    });
  }

  get open(): boolean {
    return this.#lost === undefined;
  }

  /** Sends a message and waits for the data of its reply. @throws ClientError */
  async request<Data>(type: MessageType, data?: object): Promise<Data> {
    if (this.#lost) throw this.#lost;
    const late = `No reply to \`${type}\` within ${this.#replyTimeoutMs} ms; the connection was dropped.`;
    // A late reply must never be taken for that of another request.
    const timer = setTimeout(() => {
      this.#lose(new ClientError('TIMEOUT', late));
      this.#socket.terminate();
    }, this.#replyTimeoutMs);
    const reply = { ...Promise.withResolvers<Reply>(), timer };
    this.#pending.push(reply);
    this.#socket.send(JSON.stringify({ type, data }));
    return (await reply.promise).data as Data;
  }

  /** Says goodbye and waits for the socket to close. */
  async close(): Promise<void> {
    this.#lose(ClientError.lost('The client was closed.'));
    if (this.#socket.readyState === WebSocket.CLOSED) return;
    const closed = new Promise<void>((resolve) => this.#socket.once('close', () => resolve()));
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify({ type: 'close' }));
    this.#socket.close(1000);
    await closed;
  }

  #receive(text: string): void {
    const reading = readJson(text);
    if (!reading.ok) {
      this.#lose(ClientError.lost(`The server sent what is not JSON: ${reading.message}`));
      this.#socket.terminate();
      return;
    }
    const reply = reading.value as Reply;
    const data = reply.data as ErrorData;
    const error =
      reply.type === 'error' && new ClientError(data.code, `${data.message} (${data.code})`, data);
    const pending = this.#pending.shift();
    if (pending === undefined) {
      // Only a refusal comes unasked; it holds for every request from now on.
      this.#lost ??= error || ClientError.lost('The server sent a message without a request for it.');
      return;
    }
    clearTimeout(pending.timer);
    if (error) pending.reject(error);
    else pending.resolve(reply);
  }

  #lose(error: ClientError): void {
    this.#lost ??= error;
    for (const { reject, timer } of this.#pending.splice(0)) {
      clearTimeout(timer);
      reject(this.#lost);
    }
  }
}
