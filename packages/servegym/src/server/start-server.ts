import { hostname } from 'node:os';
import {
  benchmarkEnvironment,
  inferenceGym,
  type RealSettings,
  readRealSettings,
  realServeEnvironment,
  serveEnvironment,
  shippedWorld,
} from '@servegym/environments';
import {
  createServer,
  type EnvironmentDefinition,
  Leaderboard,
  type ListeningServer,
  mountEpisodeRoutes,
  mountLeaderboardRoutes,
  type OpenEnvServer,
  type ServerOptions,
} from '@servegym/openenv';
import { readGymOptions } from '../read-table.ts';
import { CONSOLE_PATHS, mountConsole, mountDocsAsPage } from './console-files.ts';
import { listenError } from './listen-error.ts';
import { loadEnvironment } from './load-environment.ts';
import { GYM_POLICIES, type PolicyCatalogue, SERVE_POLICIES, schemaPolicies } from './policy-catalogue.ts';
import { mountPolicyRoutes } from './policy-routes.ts';
import { mountGymSeedRoutes, mountServeSeedRoutes } from './seed-routes.ts';
import { isRedisAddress, openSessionStorage } from './session-storage.ts';

/** The environments that are served by their name. */
export const ENVIRONMENT_IDS = ['llmserve', 'inferencegym', 'benchmark'] as const;
/** One of `ENVIRONMENT_IDS`, or the path of a module that exports an environment. */
export type EnvironmentName = string;

export interface StartOptions extends Omit<ServerOptions, 'store'> {
  readonly environment: EnvironmentName;
  /** 0 takes any free port. */
  readonly port: number;
  readonly host: string;
  /**
   * SQLite file or `redis://...` that keeps the sessions of a replayable environment beyond the end of the process.
   * Default: they are not kept.
   */
  readonly sessionFile?: string;
  /** A trace table of one's own for `inferencegym`. */
  readonly tableFile?: string;
}

export interface RunningServer extends ListeningServer {
  /** Sessions that a socket holds now. */
  readonly heldSessions: number;
  /** Whether sessions outlive the process. */
  readonly keepsSessions: boolean;
  /** Whether `/web/` is the console. */
  readonly hasConsole: boolean;
  /** The real server to which steps send requests; `null` in simulation. */
  readonly realMode: RealSettings | null;
}

/** What is common to the servers of all environments. */
interface MountedServer extends Pick<OpenEnvServer, 'listen' | 'close'> {
  readonly sessions: Iterable<{ readonly id: string }> & {
    readonly durable: boolean;
    isAttached(id: string): boolean;
  };
}

/**
 * Serves an environment over OpenEnv with its policies, the console, episode files and the leaderboard; in production
 * with none of them.
 * @throws InputError when the address is taken, forbidden or not of this machine, or a file cannot be used.
 */
export async function startServer(options: StartOptions): Promise<RunningServer> {
  const { port, host, mode } = options;
  let url = '';
  const server = await mountServer(options, () => url);
  try {
    const listening = await server.listen({ port, host });
    url = isEverywhere(host) ? `http://${hostname()}:${listening.port}` : listening.url;
    return {
      ...listening,
      keepsSessions: server.sessions.durable,
      hasConsole: mode !== 'production',
      realMode: options.environment === 'llmserve' ? readRealSettings(process.env) : null,
      get heldSessions() {
        return [...server.sessions].filter(({ id }) => server.sessions.isAttached(id)).length;
      },
    };
  } catch (error) {
    await server.close();
    throw listenError(error as NodeJS.ErrnoException, port, host);
  }
}

async function mountServer(options: StartOptions, hostUrl: () => string): Promise<MountedServer> {
  switch (options.environment) {
    case 'llmserve': {
      const real = readRealSettings(process.env);
      const definition = real === null ? serveEnvironment() : realServeEnvironment(real);
      return mount(definition, SERVE_POLICIES, options, mountServeSeedRoutes);
    }
    case 'inferencegym': {
      const gym = await readGymOptions(options.tableFile);
      (await (gym.world ?? shippedWorld)()).prepare();
      return mount(inferenceGym(gym), GYM_POLICIES, options, mountGymSeedRoutes);
    }
    case 'benchmark': {
      const benchmark = benchmarkEnvironment({ hostUrl });
      return mount(benchmark, schemaPolicies(benchmark), options);
    }
    default: {
      const own = await loadEnvironment(options.environment, ENVIRONMENT_IDS);
      return mount(own, schemaPolicies(own), options);
    }
  }
}

async function mount<Action, Observation extends object, State extends object>(
  definition: EnvironmentDefinition<Action, Observation, State>,
  policies: PolicyCatalogue<Action, Observation>,
  { environment, sessionFile, tableFile, ...options }: StartOptions,
  mountFurther: (server: OpenEnvServer<Action, Observation, State>) => void = () => {},
): Promise<MountedServer> {
  const isReplayable = definition.replayable !== false;
  const file = isReplayable ? sessionFile : undefined;
  const store = file === undefined ? undefined : await openSessionStorage(file);
  const openPaths = [...(options.guard?.openPaths ?? []), ...CONSOLE_PATHS];
  const server = createServer(definition, { ...options, guard: { ...options.guard, openPaths }, store });
  if (options.mode === 'production') {
    mountDocsAsPage(server.app);
    return server;
  }
  mountPolicyRoutes(server, policies);
  mountConsole(server.app);
  if (!isReplayable) return server;
  mountFurther(server);
  mountEpisodeRoutes(server);
  const leaderboard = new Leaderboard(file === undefined || isRedisAddress(file) ? ':memory:' : file);
  server.onClose(() => leaderboard.close());
  mountLeaderboardRoutes(server, leaderboard);
  return server;
}

/** Such a server is told from others by the machine's name. */
function isEverywhere(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}
