import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { EnvironmentDefinition } from '../definition.ts';
import type { EnvironmentEntry } from '../protocol/http-body.ts';

/** A server that is reached through a port, alone or beside others. */
export interface PortServer {
  readonly definition: Pick<EnvironmentDefinition, 'id' | 'version' | 'name' | 'description'>;
  answer(incoming: IncomingMessage, outgoing: ServerResponse): void;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Takes no more sessions. */
  beginDrain(): void;
  /** Sockets that are open. */
  openSockets(): number;
  /** Resolves when the last socket has left. */
  empty(): Promise<void>;
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
    (this.#enter(request) ?? this.#root).upgrade(request, socket, head);
  }

  /** The environments of the port, with paths relative to that of `asking`. */
  entries(asking: PortServer): EnvironmentEntry[] {
    const isRoot = asking === this.#root;
    const entry = ({ definition }: PortServer, path: string): EnvironmentEntry => ({
      id: definition.id,
      version: definition.version,
      name: definition.name,
      description: definition.description,
      path,
    });
    return [
      entry(this.#root, isRoot ? './' : '../'),
      ...[...this.#below].map(([path, server]) =>
        entry(server, server === asking ? './' : `${isRoot ? '' : '../'}${path.slice(1)}/`),
      ),
    ];
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
