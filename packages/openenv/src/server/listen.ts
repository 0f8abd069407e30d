import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../operations/logger.ts';
import type { PortServers } from './port-servers.ts';

/** Address to listen on. */
export interface ListenOptions {
  /** 0 takes any free port. Default 8000. */
  readonly port?: number;
  /** Default `127.0.0.1`, which only this machine reaches. Containers need `0.0.0.0`, every address. */
  readonly host?: string;
}

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
   * closes.
   */
  drain(options?: DrainOptions): Promise<void>;
}

/** Options of `drain`. */
export interface DrainOptions {
  /** Time for clients to leave, ms. Default 10 s. With a store they can go on elsewhere, so that 0 will do. */
  readonly graceMs?: number;
}

/** The kernel cuts this to its own limit; a crowd of clients may connect in one instant. */
const BACKLOG = 16_384;
/** A client that takes longer to send its headers, or a whole request, is dropped, ms. */
const HEADERS_TIMEOUT_MS = 20_000;
const REQUEST_TIMEOUT_MS = 120_000;
/** Longer than proxies keep a connection, so that it is they who close it, ms. */
const KEEP_ALIVE_TIMEOUT_MS = 75_000;

/** Opens the port that servers share. */
export async function listen(
  portServers: PortServers,
  logger: Logger,
  { port = 8000, host = '127.0.0.1' }: ListenOptions = {},
): Promise<ListeningServer> {
  const http = createServer((incoming, outgoing) => portServers.answer(incoming, outgoing));
  http.headersTimeout = HEADERS_TIMEOUT_MS;
  http.requestTimeout = REQUEST_TIMEOUT_MS;
  http.keepAliveTimeout = KEEP_ALIVE_TIMEOUT_MS;
  http.on('upgrade', (request, socket, head) => portServers.upgrade(request, socket, head));
  await new Promise<void>((resolve, reject) => {
    http.once('error', reject);
    http.listen({ port, host, backlog: BACKLOG }, () => {
      http.off('error', reject);
      resolve();
    });
  });
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
      const sockets = all.reduce((sum, server) => sum + server.openSockets(), 0);
      logger.info({ sockets, graceMs }, 'draining');
      const empty = Promise.all(all.map((server) => server.empty()));
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
export function drainOnSignal(server: ListeningServer, options: DrainOptions = {}): () => void {
  const stopListening = () => {
    process.off('SIGTERM', drain);
    process.off('SIGINT', drain);
  };
  const drain = () => {
    stopListening();
    void server.drain(options);
  };
  process.on('SIGTERM', drain);
  process.on('SIGINT', drain);
  return stopListening;
}
