import {
  benchmarkEnvironment,
  fleetEnvironment,
  inferenceGym,
  readRealSettings,
  realServeEnvironment,
  serveEnvironment,
  shippedWorld,
} from '@servegym/environments';
import {
  createServer,
  type EnvironmentDefinition,
  mountEpisodeRoutes,
  mountLeaderboardRoutes,
  type OpenEnvServer,
  type ServerOptions,
} from '@servegym/openenv';
import { prometheusMetrics } from '@servegym/openenv/metrics';
import { readGymOptions } from '../cli/arguments/read-table.ts';
import { BackgroundEnvironment } from './background/background-environment.ts';
import type { BackgroundWork } from './background/background-work.ts';
import { CONSOLE_PATHS, mountConsole, mountDocsAsPage, PLAN_PATHS } from './console-files.ts';
import { loadEnvironment } from './load-environment.ts';
import { mountPlanRoutes } from './plan-routes.ts';
import {
  FLEET_POLICIES,
  GYM_POLICIES,
  inBackground,
  type PolicyCatalogue,
  SERVE_POLICIES,
  schemaPolicies,
} from './policy-catalogue.ts';
import { mountPolicyRoutes } from './policy-routes.ts';
import { mountRuntimeRoute } from './runtime-route.ts';
import { mountFleetSeedRoutes, mountGymSeedRoutes, mountServeSeedRoutes } from './seed-routes.ts';
import { isRedisAddress, type SharedStorage } from './session-storage.ts';

/** The environments that are served by their name. */
export const ENVIRONMENT_IDS = ['llmserve', 'fleet', 'inferencegym', 'benchmark'] as const;
/** One of `ENVIRONMENT_IDS`, or the path of a module that exports an environment. */
export type EnvironmentName = string;

/** The largest episodes of `fleet` that may be in memory at once. A request of an episode takes about 60 bytes. */
const FLEETS_AT_ONCE = 5;

export interface MountOptions extends Omit<ServerOptions, 'store'> {
  /** Store of the sessions of replayable environments. Default: none. */
  readonly storage?: SharedStorage | undefined;
  /** Most simulated requests of an episode of `fleet`, about. Default: no limit. */
  readonly maxFleetRequests?: number | undefined;
  /** Does what takes long. */
  readonly work: BackgroundWork;
  /** A trace table of one's own for `inferencegym`. */
  readonly tableFile?: string | undefined;
  /** True for the first environment of its port, which is made ready before the port opens. */
  readonly isAtRoot: boolean;
  /** The URL at which this machine is reached, once it is known. */
  readonly hostUrl: () => string;
}

/** Common part of the servers of all environments. */
export interface MountedServer
  extends Pick<OpenEnvServer, 'definition' | 'listen' | 'close' | 'mount' | 'onClose'> {
  readonly sessions: Iterable<{ readonly id: string }> & {
    readonly durable: boolean;
    isAttached(id: string): boolean;
  };
}

/**
 * Makes the server of an environment with its policies, the console, episode files and the leaderboard; in production
 * with none of them.
 * @throws InputError when a file cannot be used.
 */
export async function mountEnvironment(name: EnvironmentName, options: MountOptions): Promise<MountedServer> {
  switch (name) {
    case 'llmserve': {
      const real = readRealSettings(process.env);
      const definition = real === null ? serveEnvironment() : realServeEnvironment(real);
      return mount(name, definition, SERVE_POLICIES, options, {
        always: (server) => mountRuntimeRoute(server, real),
        ifReplayable: mountServeSeedRoutes,
      });
    }
    case 'fleet': {
      const { maxFleetRequests } = options;
      const limits = {
        maxEpisodeSize: maxFleetRequests,
        ...(maxFleetRequests && { maxTotalSize: FLEETS_AT_ONCE * maxFleetRequests }),
      };
      return mount(
        name,
        fleetEnvironment(),
        FLEET_POLICIES,
        { ...options, ...limits },
        {
          always: (server) => mountRuntimeRoute(server, null),
          ifReplayable: mountFleetSeedRoutes,
        },
      );
    }
    case 'inferencegym': {
      const gym = await readGymOptions(options.tableFile);
      if (options.isAtRoot) (await (gym.world ?? shippedWorld)()).prepare();
      return mount(name, inferenceGym(gym), GYM_POLICIES, options, {
        always: (server) => mountRuntimeRoute(server, null),
        ifReplayable: mountGymSeedRoutes,
      });
    }
    case 'benchmark': {
      const benchmark = benchmarkEnvironment({ hostUrl: options.hostUrl });
      return mount(name, benchmark, schemaPolicies(benchmark), options);
    }
    default: {
      const own = await loadEnvironment(name, ENVIRONMENT_IDS);
      return mount(name, own, schemaPolicies(own), options);
    }
  }
}

/** Routes of an environment's own, outside production. */
interface FurtherRoutes<Action, Observation extends object, State extends object> {
  always?(server: OpenEnvServer<Action, Observation, State>): void;
  ifReplayable?(server: OpenEnvServer<Action, Observation, State>, background: BackgroundEnvironment): void;
}

async function mount<Action, Observation extends object, State extends object>(
  name: EnvironmentName,
  own: EnvironmentDefinition<Action, Observation, State>,
  policies: PolicyCatalogue<Action, Observation>,
  { storage, tableFile, hostUrl, isAtRoot, work, maxFleetRequests: _, ...options }: MountOptions,
  further: FurtherRoutes<Action, Observation, State> = {},
): Promise<MountedServer> {
  const background = new BackgroundEnvironment(work, {
    name,
    version: own.version,
    ...(tableFile !== undefined && { tableFile }),
  });
  const definition: typeof own = own.grade
    ? { ...own, grade: (record, caller) => background.grade(record, caller) }
    : own;
  const isReplayable = definition.replayable !== false;
  const store = isReplayable ? await storage?.share() : undefined;
  const openPaths = [...(options.guard?.openPaths ?? []), ...CONSOLE_PATHS, ...PLAN_PATHS];
  const server = createServer(definition, {
    ...options,
    guard: { ...options.guard, openPaths },
    store,
    metrics: prometheusMetrics(),
  });
  if (options.mode === 'production') {
    mountDocsAsPage(server.app);
    return server;
  }
  mountPolicyRoutes(server, inBackground(policies, background));
  mountConsole(server.app, isAtRoot);
  if (isAtRoot) mountPlanRoutes(server, work);
  further.always?.(server);
  if (!isReplayable) return server;
  further.ifReplayable?.(server, background);
  mountEpisodeRoutes(server);
  const isFile = storage !== undefined && !isRedisAddress(storage.address);
  mountLeaderboardRoutes(server, isFile ? storage.address : ':memory:');
  return server;
}
