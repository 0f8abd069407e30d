import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EnvironmentDefinition } from '../protocol/definition.ts';
import type { EnvironmentEntry } from '../protocol/messages.ts';
import { withDefaults } from '../protocol/read-json.ts';
import type { Logger } from '../sessions/session-store.ts';
import type { SocketServer } from './socket-server.ts';

const DEFAULT_ADDRESS = {
  /** 0 takes any free port. */
  port: 8000,
  /** `127.0.0.1` is reached by this machine only. Containers need `0.0.0.0`, every address. */
  host: '127.0.0.1',
};
/** Address to listen on. */
export type ListenOptions = Partial<Readonly<typeof DEFAULT_ADDRESS>>;

/** A server that listens. */
export interface ListeningServer {
  /** Base URL for clients on this machine, without a slash at the end. */
  readonly url: string;
  /** Address at which it listens; `0.0.0.0` and `::` are all of this machine's. */
  readonly address: string;
  readonly port: number;
  /** Answers what is being answered, then closes the sockets (code 1001), the sessions and the port. */
  close(): Promise<void>;
  /**
   * Takes no more connections and sessions (`/health` says 503), gives the clients that are there time to leave, then
   * closes. The time to leave is 10 s by default; with a store clients can go on elsewhere, so that 0 will do.
   */
  drain(options?: { readonly graceMs?: number }): Promise<void>;
}

/** The kernel cuts this to its own limit; a crowd of clients may connect in one instant. */
const BACKLOG = 16_384;
/** A client that takes longer to send its headers, or a whole request, is dropped, ms. */
const HEADERS_TIMEOUT_MS = 20_000;
const REQUEST_TIMEOUT_MS = 120_000;
/** Longer than proxies keep a connection, so that it is they who close it, ms. */
const KEEP_ALIVE_TIMEOUT_MS = 75_000;

export async function listen(
  portServers: PortServers,
  logger: Logger,
  address: ListenOptions = {},
): Promise<ListeningServer> {
  const { port, host } = withDefaults(DEFAULT_ADDRESS, address);
  const http = createServer(
    // Other upgrades, such as h2c, are ignored (RFC 9110, section 7.8). Node before 24.9 has no such option: they get a 403.
    { shouldUpgradeCallback: ({ headers }) => /^websocket$/i.test(headers.upgrade ?? '') },
    (incoming, outgoing) => portServers.answer(incoming, outgoing),
  );
  http.headersTimeout = HEADERS_TIMEOUT_MS;
  http.requestTimeout = REQUEST_TIMEOUT_MS;
  http.keepAliveTimeout = KEEP_ALIVE_TIMEOUT_MS;
  http.on('upgrade', (request, socket, head) => portServers.upgrade(request, socket, head));
  await once(http.listen({ port, host, backlog: BACKLOG }), 'listening');
  const bound = http.address() as AddressInfo;
  let closing: Promise<void> | undefined;
  return {
    url: `http://${reachable(host)}:${bound.port}`,
    address: bound.address,
    port: bound.port,
    close,
    async drain({ graceMs = 10_000 } = {}) {
      const { all } = portServers;
      for (const server of all) server.beginDrain();
      http.close();
      const sockets = all.reduce((sum, server) => sum + server.sockets.size, 0);
      logger.info({ sockets, graceMs }, 'draining');
      const empty = Promise.all(all.map((server) => server.sockets.empty()));
      await Promise.race([empty, sleep(graceMs, undefined, { ref: false })]);
      await close();
    },
  };

  function close(): Promise<void> {
    closing ??= stop();
    return closing;
  }

  async function stop(): Promise<void> {
    const closed = new Promise<void>((resolve) => http.close(() => resolve()));
    await Promise.all(portServers.all.map((server) => server.close()));
    http.closeAllConnections();
    await closed;
  }
}

function reachable(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}

/**
 * Drains a server at the first SIGTERM or SIGINT, after which the process can end by itself. A second signal ends it at
 * once, as if nobody listened. Returns a function that stops listening for signals.
 */
export function drainOnSignal(
  server: ListeningServer,
  ...options: Parameters<ListeningServer['drain']>
): () => void {
  const stopListening = () => {
    process.off('SIGTERM', drain);
    process.off('SIGINT', drain);
  };
  const drain = () => {
    stopListening();
    void server.drain(...options);
  };
  process.on('SIGTERM', drain);
  process.on('SIGINT', drain);
  return stopListening;
}

/** A server that is reached through a port, alone or beside others. */
export interface PortServer {
  readonly definition: Pick<EnvironmentDefinition, 'id' | 'version' | 'name' | 'description'>;
  answer(incoming: IncomingMessage, outgoing: ServerResponse): void;
  readonly sockets: SocketServer;
  beginDrain(): void;
  close(): Promise<void>;
}

/** The servers of one port: one at its root, others below a path each. */
export class PortServers {
  readonly #root: PortServer;
  readonly #below = new Map<string, PortServer>();

  constructor(root: PortServer) {
    this.#root = root;
  }

  /** @throws TypeError when the path is no single step such as `/name`, or taken */
  add(path: string, server: PortServer): void {
    if (!/^\/[\w.~-]+$/.test(path)) {
      throw new TypeError(`Expected the path of an environment to be like \`/name\`, got \`${path}\``);
    }
    if (this.#below.has(path)) {
      throw new TypeError(`Expected a path of its own for each environment, got \`${path}\` twice`);
    }
    this.#below.set(path, server);
  }

  get all(): PortServer[] {
    return [this.#root, ...this.#below.values()];
  }

  answer(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const server = this.#enter(incoming);
    if (server !== undefined) {
      server.answer(incoming, outgoing);
      return;
    }
    // Relative links of the environment's page need the slash. The redirect is relative too, for proxies that add a prefix.
    const [path, query] = incoming.url!.slice(1).split('?', 2);
    outgoing.writeHead(307, { location: `${path}/${query === undefined ? '' : `?${query}`}` }).end();
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    void (this.#enter(request) ?? this.#root).sockets.upgrade(request, socket, head);
  }

  /** The environments of the port, with paths relative to that of `asking`. */
  entries(asking: PortServer): EnvironmentEntry[] {
    const up = asking === this.#root ? '' : '../';
    return [['', this.#root] as const, ...this.#below].map(([path, server]) => {
      const { id, version, name, description } = server.definition;
      const down = path && `${path.slice(1)}/`;
      return { id, version, name, description, path: server === asking ? './' : up + down };
    });
  }

  /** The server of a request, whose URL becomes relative to it; `undefined` when the slash behind the path is missing. */
  #enter(request: IncomingMessage): PortServer | undefined {
    if (this.#below.size === 0) return this.#root;
    const url = request.url ?? '/';
    const [path] = /^\/[^/?]*/.exec(url) ?? [''];
    const server = this.#below.get(path);
    if (server === undefined) return this.#root;
    const rest = url.slice(path.length);
    if (!rest.startsWith('/')) return undefined;
    request.url = rest;
    return server;
  }
}
