import { hostname } from 'node:os';
import { ENVIRONMENT_IDS, type RealSettings, readRealSettings } from '@servegym/environments';
import { type ListeningServer, RateLimiter, type ServerOptions } from '@servegym/openenv';
import { InputError } from '../cli/failure.ts';
import { type BackgroundLimits, BackgroundWork, defaultWorkLimits } from './background/background-work.ts';
import { listenError } from './listening.ts';
import { type EnvironmentName, type MountedServer, mountEnvironment } from './mount-environment.ts';
import { SharedStorage } from './session-storage.ts';

export interface StartOptions extends Omit<ServerOptions, 'store'> {
  /** The first is served at the root, the others each below `/` and its name. Default: `ENVIRONMENT_IDS`. */
  readonly environments?: readonly EnvironmentName[];
  /** Default 0: any free port. */
  readonly port?: number;
  /** Default 127.0.0.1. */
  readonly host?: string;
  /**
   * SQLite file or `redis://...` that keeps the sessions of replayable environments beyond the end of the process.
   * Default: they are not kept.
   */
  readonly sessionFile?: string;
  /** Limit of the file, bytes. Default 1 GiB. */
  readonly sessionFileMaxBytes?: number;
  /** Limits of planners, baselines and graders. Default: `defaultWorkLimits()`. */
  readonly work?: Partial<BackgroundLimits>;
  /** A trace table of one's own for `inferencegym`. */
  readonly tableFile?: string;
  /** Most simulated requests of an episode of `fleet`, about. Default: no limit. */
  readonly maxFleetRequests?: number;
}

export interface RunningServer extends ListeningServer {
  /** Sessions that a socket holds now. */
  readonly heldSessions: number;
  /** Long requests that are worked on, or wait for a thread. */
  readonly longRequests: number;
  /** True where sessions outlive the process. */
  readonly keepsSessions: boolean;
  /** Sentences on who else keeps sessions in the same file. */
  readonly storageNotes: readonly string[];
  /** True where `/web/` is the console. */
  readonly hasConsole: boolean;
  /** Ids of the environments below the one at the root. */
  readonly below: readonly string[];
  /** The real server to which steps of `llmserve` send requests; `null` in simulation. */
  readonly realMode: RealSettings | null;
}

/**
 * Serves environments over OpenEnv on one port.
 * @throws InputError when the address is taken, forbidden or not of this machine, a file cannot be used, or two
 *   environments have the same name.
 */
export async function startServer({
  environments = ENVIRONMENT_IDS,
  port = 0,
  host = '127.0.0.1',
  sessionFile,
  sessionFileMaxBytes: maxBytes,
  work: limits,
  ...options
}: StartOptions = {}): Promise<RunningServer> {
  let url = '';
  const storage =
    sessionFile === undefined
      ? undefined
      : new SharedStorage(sessionFile, { maxBytes, logger: options.logger });
  const work = new BackgroundWork({ ...defaultWorkLimits(), ...limits });
  const servers: MountedServer[] = [];
  const { rateLimit } = options.guard ?? {};
  try {
    // All environments of the port count the requests of a client together.
    const guard = { ...options.guard, ...(rateLimit && { rateLimit: RateLimiter.of(rateLimit) }) };
    for (const name of environments) {
      const isAtRoot = servers.length === 0;
      const server = await mountEnvironment(name, {
        ...options,
        guard,
        storage,
        work,
        isAtRoot,
        hostUrl: () => url,
      });
      servers.push(server);
      if (isAtRoot) server.onClose(() => void work.close());
      if (!isAtRoot) mountBelow(servers[0], server);
    }
  } catch (error) {
    await closeAll(servers);
    throw error;
  }
  const [root, ...below] = servers as [MountedServer, ...MountedServer[]];
  try {
    const listening = await root.listen({ port, host });
    url = isEverywhere(host) ? `http://${hostname()}:${listening.port}` : listening.url;
    return {
      ...listening,
      keepsSessions: servers.some(({ sessions }) => sessions.durable),
      storageNotes: (await storage?.notes()) ?? [],
      hasConsole: options.mode !== 'production',
      below: below.map(({ definition }) => definition.id),
      realMode: environments.includes('llmserve') ? readRealSettings(process.env) : null,
      get longRequests() {
        return work.size;
      },
      get heldSessions() {
        return servers.flatMap(({ sessions }) => [...sessions].filter(({ id }) => sessions.isAttached(id)))
          .length;
      },
    };
  } catch (error) {
    await closeAll(servers);
    throw listenError(error as NodeJS.ErrnoException, port, host);
  }
}

function mountBelow(root: MountedServer, server: MountedServer): void {
  const { id } = server.definition;
  try {
    if (id === root.definition.id) throw new TypeError(`\`${id}\` twice`);
    root.mount(`/${id}`, server);
  } catch (error) {
    throw new InputError(
      `Expected environments whose names are different and fit into a path (letters, digits, ., _, ~ and -): ${(error as Error).message}`,
      { cause: error },
    );
  }
}

async function closeAll(servers: readonly MountedServer[]): Promise<void> {
  for (const server of servers) await server.close();
}

/** A server on all addresses is named after its machine. */
function isEverywhere(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}
