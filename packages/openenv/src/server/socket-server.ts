import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { WebSocket, WebSocketServer } from 'ws';
import { missingSession, openEnvError } from '../protocol/errors.ts';
import { type ErrorData, JSON_RPC_ERROR_CODES } from '../protocol/messages.ts';
import type { Session } from '../sessions/session.ts';
import type { SessionRegistry } from '../sessions/session-registry.ts';
import { type Logger, sessionLabel } from '../sessions/session-store.ts';
import type { ServerParts } from './create-server.ts';
import type { Refusal } from './guard.ts';
import { clientAddress } from './request-origin.ts';
import { answerInOrder, errorData, errorText, serveSession } from './session-socket.ts';

/** A refused client has this long to send its first message and so read why it was refused, ms. */
const REFUSAL_GRACE_MS = 5000;
/** A closing socket has this long to answer before it is dropped, ms. */
const CLOSE_GRACE_MS = 2000;
/** A client that pings and lets this much pile up unread is dropped, bytes. */
const MAX_UNREAD_PONGS = 64 * 1024;

interface Hold {
  readonly session: Session;
  /** True for a session that was opened for this socket, and so has no other owner. */
  readonly owned: boolean;
}

type Admission = Hold | { readonly session?: undefined; readonly refusal: ErrorData };

/** Takes the WebSocket upgrades of an HTTP server: `/ws` and `/mcp`. */
export class SocketServer {
  readonly #webSockets: WebSocketServer;
  readonly #sessionIds = new WeakMap<IncomingMessage, string>();
  readonly #sessions: SessionRegistry;
  readonly #parts: ServerParts;
  readonly #logger: Logger;
  readonly #pingTimer: NodeJS.Timeout;
  #isClosing = false;
  /** Sockets that have not been heard since the last ping. */
  readonly #silent = new Set<WebSocket>();
  /** The socket of each session. */
  readonly #holders = new Map<string, Hold & { readonly socket: WebSocket }>();
  /** Sockets whose client has sent `close`. */
  readonly #leaving = new WeakSet<WebSocket>();

  constructor(parts: ServerParts) {
    const { sessions, options } = parts;
    this.#sessions = sessions;
    this.#parts = parts;
    this.#logger = options.logger;
    this.#webSockets = new WebSocketServer({
      noServer: true,
      maxPayload: options.maxMessageBytes,
      perMessageDeflate: false,
      autoPong: false,
    });
    this.#webSockets.on('headers', (headers, request) => {
      const id = this.#sessionIds.get(request);
      headers.push('x-openenv-extensions: vector');
      if (id !== undefined) headers.push(`x-session-id: ${id}`);
    });
    this.#pingTimer = setInterval(() => this.#pingAll(), options.pingIntervalMs).unref();
  }

  get size(): number {
    return this.#webSockets.clients.size;
  }

  /** Resolves when the last socket has left. */
  async empty(): Promise<void> {
    while (this.size > 0) {
      const [socket] = this.#webSockets.clients;
      await new Promise((resolve) => socket!.once('close', resolve));
    }
  }

  /** Answers what is being answered, then closes every socket, with code 1001, and takes no more. */
  async close(): Promise<void> {
    this.#isClosing = true;
    clearInterval(this.#pingTimer);
    const sockets = [...this.#webSockets.clients];
    for (const socket of sockets) socket.pause();
    const settled = [...this.#holders.values()].map(({ session }) => session.settled());
    await Promise.race([Promise.all(settled), sleep(CLOSE_GRACE_MS, undefined, { ref: false })]);
    // The replies of what has just settled are sent in the microtasks before this.
    await setImmediate();
    const closed = sockets.map((socket) => {
      if (socket.readyState === WebSocket.CLOSED) return undefined;
      const gone = new Promise((resolve) => socket.once('close', resolve));
      socket.close(1001, 'The server is shutting down');
      socket.resume();
      setTimeout(() => socket.terminate(), CLOSE_GRACE_MS).unref();
      return gone;
    });
    await Promise.all(closed);
  }

  async upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    // A peer that goes away before the handshake is done must not bring the process down.
    socket.on('error', () => {});
    const [path = '/', search] = (request.url ?? '/').split('?', 2);
    const query = new URLSearchParams(search);
    const { guard } = this.#parts;
    const address = clientAddress(request, this.#parts.options.trustedProxies);
    const refusal: HandshakeRefusal | null =
      path === '/ws' || path === '/mcp'
        ? (guard.check(request, path) ?? (this.#isClosing ? CLOSING : null))
        : NO_SOCKET;
    if (refusal) {
      const { code } = refusal;
      if (code !== undefined) this.#logger.warn({ path, code, address }, 'handshake refused');
      refuseHandshake(socket, refusal);
      return;
    }
    const client = guard.clientOf(request);
    const sessionId = path === '/ws' ? query.get('session_id') : null;
    const admission = await this.#admit(client, sessionId, query.get('takeover') === 'true');
    const abandon = () => {
      if (admission.session) this.#release(admission, false);
    };
    if (socket.destroyed || this.#isClosing) {
      abandon();
      socket.destroy();
      return;
    }
    if (admission.session) this.#sessionIds.set(request, admission.session.id);
    // A handshake that is not in order ends the connection.
    socket.once('close', abandon);
    this.#webSockets.handleUpgrade(request, socket, head, (webSocket) => {
      socket.off('close', abandon);
      this.#watch(webSocket);
      if (admission.session) {
        this.#serve(webSocket, path, admission, address, client);
      } else {
        this.#logger.warn({ path, code: admission.refusal.code }, 'session refused');
        this.#sessions.counts.countError(admission.refusal.code);
        refuse(webSocket, path, admission.refusal);
      }
    });
  }

  async #admit(client: string, sessionId: string | null, takeover: boolean): Promise<Admission> {
    try {
      if (!sessionId) {
        const session = this.#sessions.open(client);
        this.#sessions.attach(session);
        return { session, owned: true };
      }
      const wasHere = this.#sessions.find(sessionId) !== undefined;
      const session = await this.#sessions.resume(sessionId);
      if (!session) throw missingSession(sessionId);
      if (this.#sessions.attach(session)) return { session, owned: !wasHere };
      const holder = this.#holders.get(sessionId);
      if (takeover && holder) {
        this.#holders.delete(sessionId);
        holder.socket.terminate();
        return { session, owned: holder.owned };
      }
      throw openEnvError('SESSION_ATTACHED', { id: sessionId });
    } catch (error) {
      return { refusal: errorData(error) };
    }
  }

  /** @param client digest, as of `Guard.clientOf` */
  #serve(socket: WebSocket, path: string, hold: Hold, address: string, client: string): void {
    const { session } = hold;
    const openedAt = performance.now();
    const label = sessionLabel(session.id);
    this.#logger.info({ session: label, path, address }, 'socket opened');
    this.#holders.set(session.id, { ...hold, socket });
    socket.once('close', (code) => {
      const seconds = Math.round(performance.now() - openedAt) / 1000;
      this.#logger.info({ session: label, path, address, code, seconds }, 'socket closed');
      // Another socket may have taken the session over.
      if (this.#holders.get(session.id)?.socket !== socket) return;
      this.#holders.delete(session.id);
      this.#release(hold, this.#leaving.has(socket));
    });
    const leaving = new AbortController();
    socket.once('close', () => leaving.abort(new Error('The client has left')));
    const caller = { name: client, signal: leaving.signal };
    const { jsonRpc } = this.#parts;
    // All requests of a socket act on one session.
    const answerRpc = async (data: Buffer) =>
      JSON.stringify(await jsonRpc.answerBytes(data, { session, caller }));
    if (path === '/mcp') answerInOrder(socket, answerRpc);
    else serveSession(socket, session, this.#parts, caller, () => this.#leaving.add(socket));
  }

  /** Lets go of a session whose socket is gone: one that others know rests, one that is kept can be resumed. */
  #release({ session, owned }: Hold, forGood: boolean): void {
    if (!owned) this.#sessions.detach(session);
    else if (forGood) this.#sessions.close(session.id).catch(() => {});
    else void this.#sessions.release(session.id);
  }

  #watch(socket: WebSocket): void {
    // An error of the connection is followed by its close.
    socket.on('error', () => {});
    socket.on('ping', (payload) => {
      if (socket.bufferedAmount > MAX_UNREAD_PONGS) socket.terminate();
      else socket.pong(payload);
    });
    socket.on('pong', () => this.#silent.delete(socket));
    socket.once('close', () => this.#silent.delete(socket));
    const limit = this.#parts.options.socketIdleTimeoutMs;
    if (limit === null) return;
    const timer = setTimeout(() => socket.close(1000, 'Idle for too long'), limit).unref();
    socket.on('message', () => timer.refresh());
    socket.on('close', () => clearTimeout(timer));
  }

  #pingAll(): void {
    for (const socket of this.#webSockets.clients) {
      // A socket that is not being read cannot be heard; how long it may stay so is limited elsewhere.
      if (socket.isPaused) continue;
      if (this.#silent.has(socket)) {
        socket.terminate();
      } else if (socket.readyState === WebSocket.OPEN) {
        this.#silent.add(socket);
        socket.ping();
      }
    }
  }
}

type HandshakeRefusal = Readonly<{ status: number; detail: string }> &
  Partial<Pick<Refusal, 'code' | 'headers'>>;
const NO_SOCKET = { status: 403, detail: 'There is no WebSocket at this path' } as const;
const CLOSING = { status: 503, detail: 'The server is shutting down' } as const;

/** Answers a handshake as plain HTTP. */
function refuseHandshake(socket: Duplex, { status, detail, code, headers = {} }: HandshakeRefusal): void {
  const text = JSON.stringify({ detail, code });
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'connection: close',
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(text)}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ];
  socket.end(`${lines.join('\r\n')}\r\n\r\n${text}`);
}

/**
 * Tells a client why it gets no session, and closes only after its first message: a client that sends before it reads
 * would otherwise see nothing but a closed socket.
 */
function refuse(socket: WebSocket, path: string, refusal: ErrorData): void {
  const { message, code, ...data } = refusal;
  socket.send(
    path === '/ws'
      ? errorText(refusal)
      : JSON.stringify({
          jsonrpc: '2.0',
          id: null,
          error: { code: JSON_RPC_ERROR_CODES.serverError, message, data },
        }),
  );
  const timer = setTimeout(() => socket.close(1000), REFUSAL_GRACE_MS).unref();
  socket.once('message', () => socket.close(1000));
  socket.once('close', () => clearTimeout(timer));
}
