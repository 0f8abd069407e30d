import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { JSON_RPC_ERROR_CODES } from '../protocol/json-rpc.ts';
import type { ErrorData } from '../protocol/web-socket-message.ts';
import type { Session } from '../sessions/session.ts';
import { EnvironmentFactoryError, SessionCapacityError } from '../sessions/session-errors.ts';
import type { SessionRegistry } from '../sessions/session-registry.ts';
import { serveJsonRpc } from './json-rpc-socket.ts';
import type { ResolvedServerOptions } from './server-options.ts';
import { errorText, type SessionSocketParts, serveSession } from './session-socket.ts';

/** A refused client has this long to send its first message and so read why it was refused, ms. */
const REFUSAL_GRACE_MS = 5000;
/** A closing socket has this long to answer before it is dropped, ms. */
const CLOSE_GRACE_MS = 2000;

type SocketOptions = Pick<
  ResolvedServerOptions,
  'maxMessageBytes' | 'pingIntervalMs' | 'socketIdleTimeoutMs'
>;

/** Takes the WebSocket upgrades of an HTTP server: `/ws` and `/mcp`. */
export class SocketServer {
  readonly #webSockets: WebSocketServer;
  readonly #sessions: SessionRegistry;
  readonly #parts: SessionSocketParts;
  readonly #options: SocketOptions;
  readonly #pingTimer: NodeJS.Timeout;
  /** Sockets that have not been heard since the last ping. */
  readonly #silent = new Set<WebSocket>();

  constructor(sessions: SessionRegistry, parts: SessionSocketParts, options: SocketOptions) {
    this.#sessions = sessions;
    this.#parts = parts;
    this.#options = options;
    this.#webSockets = new WebSocketServer({
      noServer: true,
      maxPayload: options.maxMessageBytes,
      perMessageDeflate: false,
    });
    this.#webSockets.on('headers', (headers, request) => {
      const id = sessionIds.get(request);
      if (id !== undefined) headers.push(`x-session-id: ${id}`);
    });
    this.#pingTimer = setInterval(() => this.#pingAll(), options.pingIntervalMs).unref();
  }

  /** Sockets that are open. */
  get size(): number {
    return this.#webSockets.clients.size;
  }

  attachTo(server: Server): void {
    server.on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head));
  }

  /** Closes every socket, with code 1001, and takes no more. */
  async close(): Promise<void> {
    clearInterval(this.#pingTimer);
    const closed = [...this.#webSockets.clients].map(
      (socket) => new Promise<void>((resolve) => socket.once('close', () => resolve())),
    );
    for (const socket of this.#webSockets.clients) {
      socket.close(1001, 'The server is shutting down');
      setTimeout(() => socket.terminate(), CLOSE_GRACE_MS).unref();
    }
    this.#webSockets.close();
    await Promise.all(closed);
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const url = new URL(request.url ?? '/', 'http://localhost');
    if (url.pathname !== '/ws' && url.pathname !== '/mcp') {
      socket.end('HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: 0\r\n\r\n');
      return;
    }
    const admission = this.#admit(url.pathname === '/ws' ? url.searchParams.get('session_id') : null);
    if (admission.session) sessionIds.set(request, admission.session.id);
    const abandon = () => {
      if (admission.session) this.#release(admission);
    };
    socket.once('close', abandon);
    this.#webSockets.handleUpgrade(request, socket, head, (webSocket) => {
      socket.off('close', abandon);
      this.#watch(webSocket);
      if (admission.session === undefined) {
        refuse(webSocket, url.pathname, admission.refusal);
        return;
      }
      webSocket.once('close', abandon);
      if (url.pathname === '/ws') serveSession(webSocket, admission.session, this.#parts);
      else serveJsonRpc(webSocket, admission.session, this.#parts.jsonRpc);
    });
  }

  /** Finds or opens the session that a new socket will hold. */
  #admit(requestedId: string | null): Admission {
    if (requestedId) {
      const session = this.#sessions.find(requestedId);
      const id = requestedId.slice(0, 100);
      if (!session) {
        return { refusal: { message: `Unknown session_id: ${id}`, code: 'SESSION_ERROR' } };
      }
      if (!this.#sessions.attach(session.id)) {
        return {
          refusal: { message: `Session ${id} already has an attached WebSocket`, code: 'SESSION_ERROR' },
        };
      }
      return { session, owned: false };
    }
    try {
      const session = this.#sessions.open();
      this.#sessions.attach(session.id);
      return { session, owned: true };
    } catch (error) {
      return { refusal: refusalOf(error as Error) };
    }
  }

  #release({ session, owned }: Admitted): void {
    if (owned) void this.#sessions.close(session.id);
    else this.#sessions.detach(session.id);
  }

  #watch(socket: WebSocket): void {
    // Protocol errors (bad UTF-8, oversized frames) close the socket by themselves; the event must not be unhandled.
    socket.on('error', () => {});
    const heard = () => this.#silent.delete(socket);
    socket.on('pong', heard);
    socket.on('close', heard);
    const limit = this.#options.socketIdleTimeoutMs;
    if (limit === null) return;
    const timer = setTimeout(() => socket.close(1000, 'Idle for too long'), limit).unref();
    socket.on('message', () => timer.refresh());
    socket.on('close', () => clearTimeout(timer));
  }

  #pingAll(): void {
    for (const socket of this.#webSockets.clients) {
      if (this.#silent.has(socket)) {
        socket.terminate();
      } else if (socket.readyState === socket.OPEN) {
        this.#silent.add(socket);
        socket.ping();
      }
    }
  }
}

type Admitted = { readonly session: Session; readonly owned: boolean };
type Admission = Admitted | { readonly session?: undefined; readonly refusal: ErrorData };

const sessionIds = new WeakMap<IncomingMessage, string>();

function refusalOf(error: Error): ErrorData {
  if (error instanceof SessionCapacityError) {
    return {
      message: error.message,
      code: 'CAPACITY_REACHED',
      active_sessions: error.activeSessions,
      max_sessions: error.maxSessions,
    };
  }
  if (error instanceof EnvironmentFactoryError) {
    return { message: error.message, code: 'FACTORY_ERROR', factory_name: error.factoryName };
  }
  return { message: error.message, code: 'SESSION_ERROR' };
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
