import { findEnvironment, readRealSettings } from '@servegym/environments';
import {
  createServer,
  type Grade,
  mountEpisodeRoutes,
  mountLeaderboardRoutes,
  type OpenEnvServer,
  type ServerOptions,
} from '@servegym/openenv';
import { prometheusMetrics } from '@servegym/openenv/metrics';
import { BackgroundEnvironment } from './background/background-environment.ts';
import type { BackgroundWork } from './background/background-work.ts';
import { hasBaselines, mountBaselineRoutes } from './baseline-routes.ts';
import { CONSOLE_PATHS, mountConsole, mountDocsAsPage, PLAN_PATHS } from './console-files.ts';
import { mountInfoRoute, mountRuntimeRoute } from './info-routes.ts';
import { openEnvironment } from './open-environment.ts';
import { mountPlanRoutes } from './plan-routes.ts';
import { inBackground } from './policy-catalogue.ts';
import { mountPolicyRoutes } from './policy-routes.ts';
import { isRedisAddress, type SharedStorage } from './session-storage.ts';

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
  const { storage, tableFile, hostUrl, isAtRoot, work, maxFleetRequests, ...given } = options;
  const real = findEnvironment(name)?.takes.includes('server') ? readRealSettings(process.env) : null;
  const {
    definition: own,
    policies,
    entry,
    inputs,
  } = await openEnvironment(name, { tableFile, hostUrl, real });
  if (isAtRoot) await entry?.prepare?.(inputs);
  const background = new BackgroundEnvironment(work, {
    name,
    version: own.version,
    ...(tableFile !== undefined && { tableFile }),
  });
  const definition: typeof own = own.grade
    ? {
        ...own,
        grade: (record, caller) =>
          background.run(record.reset, { kind: 'grade', record }, caller) as Promise<Grade>,
      }
    : own;
  const isReplayable = definition.replayable !== false;
  const openPaths = [...(given.guard?.openPaths ?? []), ...CONSOLE_PATHS, ...PLAN_PATHS];
  const server = createServer(definition, {
    ...given,
    ...(entry?.hasLargeEpisodes && {
      maxEpisodeSize: maxFleetRequests,
      ...(maxFleetRequests && { maxTotalSize: FLEETS_AT_ONCE * maxFleetRequests }),
    }),
    guard: { ...given.guard, openPaths },
    store: isReplayable ? await storage?.share() : undefined,
    metrics: prometheusMetrics(),
  });
  if (given.mode === 'production') {
    mountDocsAsPage(server.app);
    return server;
  }
  mountPolicyRoutes(server, inBackground(policies, background));
  mountConsole(server.app, isAtRoot);
  if (isAtRoot) mountPlanRoutes(server, work);
  const played = entry && hasBaselines(entry) ? entry : undefined;
  if (played) mountRuntimeRoute(server, real);
  if (!isReplayable) return server;
  if (played) {
    mountBaselineRoutes(server, played, background);
    mountInfoRoute(server, played);
  }
  mountEpisodeRoutes(server);
  const isFile = storage !== undefined && !isRedisAddress(storage.address);
  mountLeaderboardRoutes(server, isFile ? storage.address : ':memory:');
  return server;
}
