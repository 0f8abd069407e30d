import { agentsOf } from '@servegym/agents';
import {
  ENVIRONMENT_IDS,
  type EnvironmentId,
  findEnvironment,
  type RealSettings,
  type RegisteredEnvironment,
  readRealSettings,
} from '@servegym/environments';
import {
  createServer,
  type Grade,
  mountEpisodeRoutes,
  type OpenEnvServer,
  publishedSchemas,
  RateLimiter,
  type ServerOptions,
} from '@servegym/openenv';
import { prometheusMetrics } from '@servegym/openenv/metrics';
import { z } from 'zod';
import { boundName } from '../cli/arguments/options.ts';
import { InputError, storeFailure } from '../cli/failure.ts';
import {
  type BackgroundLimits,
  BackgroundWork,
  backgroundEnvironment,
  defaultWorkLimits,
  inBackground,
} from './background-work.ts';
import { mountBaselineRoutes } from './baseline-routes.ts';
import { CONSOLE_PATHS, mountConsole, mountDocsAsPage, PLAN_PATHS } from './console-files.ts';
import { listen } from './listening.ts';
import { openEnvironment } from './open-environment.ts';
import { type CallLimits, DEFAULT_CALL_LIMITS, OutsideCalls } from './outside-calls.ts';
import { mountPlanRoutes } from './plan-routes.ts';
import { mountPolicyRoutes } from './policy-routes.ts';
import { described, jsonObject } from './routes.ts';
import { sharedStorage } from './session-storage.ts';

export interface StartOptions extends Omit<ServerOptions, 'store'> {
  /** The first is served at the root, the others each below `/` and its name. Default: `ENVIRONMENT_IDS`. */
  readonly environments?: readonly string[];
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
  /**
   * Limits of what each client may cause at language models and real servers in an hour. Default: none are asked where
   * anybody may use the server, else `DEFAULT_CALL_LIMITS`.
   */
  readonly outside?: Partial<CallLimits>;
  /** A trace table of one's own for `inferencegym`. */
  readonly tableFile?: string;
  /** Most simulated requests of an episode of `fleet`, about. Default: no limit. */
  readonly maxFleetRequests?: number;
}

export type RunningServer = Readonly<Awaited<ReturnType<typeof startServer>>>;

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
  outside: callLimits,
  ...options
}: StartOptions = {}) {
  let url = '';
  const { logger } = options;
  const storage = sessionFile === undefined ? undefined : sharedStorage(sessionFile, { maxBytes, logger });
  const work = new BackgroundWork({ ...defaultWorkLimits(), ...limits });
  const isOpen = !options.guard?.tokens?.length;
  const outside = new OutsideCalls({ ...DEFAULT_CALL_LIMITS, ...(isOpen && { calls: 0 }), ...callLimits });
  const servers: OpenEnvServer[] = [];
  const { rateLimit } = options.guard ?? {};
  try {
    // All environments of the port count the requests of a client together.
    const guard = { ...options.guard, ...(rateLimit && { rateLimit: RateLimiter.of(rateLimit) }) };
    for (const name of environments) {
      const isAtRoot = servers.length === 0;
      const mounting = { ...options, guard, storage, work, outside, isAtRoot, hostUrl: () => url };
      const server = await mountEnvironment(name, mounting);
      servers.push(server);
      if (isAtRoot) server.onClose(() => void work.close());
      if (!isAtRoot) mountBelow(servers[0], server);
    }
  } catch (error) {
    for (const server of servers) await server.close();
    throw storeFailure(error);
  }
  const listening = await listen(servers, { port, host });
  const name = boundName(host);
  url = name === host ? listening.url : `http://${name}:${listening.port}`;
  return {
    ...listening,
    /** True where sessions outlive the process. */
    keepsSessions: servers.some(({ sessions }) => sessions.durable),
    /** True where `/web/` is the console. */
    hasConsole: options.mode !== 'production',
    /** Ids of the environments below the one at the root. */
    below: servers.slice(1).map(({ definition }) => definition.id),
    /** The real server to which steps of `llmserve` send requests; `null` in simulation. */
    realMode: environments.includes('llmserve') ? readRealSettings(process.env) : null,
    /** Long requests that are worked on, or wait for a thread. */
    get longRequests() {
      return work.size;
    },
  };
}

function mountBelow(root: OpenEnvServer, server: OpenEnvServer): void {
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

/** The largest episodes of `fleet` that may be in memory at once. A request of an episode takes about 60 bytes. */
const FLEETS_AT_ONCE = 5;

interface MountOptions extends Omit<StartOptions, 'work' | 'outside'> {
  /** Store of the sessions of replayable environments. Default: none. */
  readonly storage?: ReturnType<typeof sharedStorage> | undefined;
  readonly work: BackgroundWork;
  readonly outside: OutsideCalls;
  /** True for the first environment of its port, which is made ready before the port opens. */
  readonly isAtRoot: boolean;
  /** The URL at which this machine is reached, once it is known. */
  readonly hostUrl: () => string;
}

/**
 * Makes the server of an environment with its policies, the console and episode files; in production with none of them.
 * @throws InputError when a file cannot be used.
 */
async function mountEnvironment(name: string, options: MountOptions): Promise<OpenEnvServer> {
  const { storage, tableFile, hostUrl, isAtRoot, work, outside, maxFleetRequests, ...given } = options;
  const real = findEnvironment(name)?.takes.includes('server') ? readRealSettings(process.env) : null;
  const opened = await openEnvironment(name, { tableFile, hostUrl, real, outside });
  const { definition: simulated, entry } = opened;
  const own = real ? outside.countedEnvironment(simulated, callsOf(real)) : simulated;
  if (isAtRoot) await entry?.prepare?.(opened.inputs);
  const background = backgroundEnvironment(work, { name, version: own.version, tableFile });
  const grade: typeof own.grade = (record, caller) =>
    background.run(record.reset, { kind: 'grade', record }, caller) as Promise<Grade>;
  const definition = own.grade ? { ...own, grade } : own;
  const isReplayable = definition.replayable !== false;
  const openPaths = [...(given.guard?.openPaths ?? []), ...CONSOLE_PATHS, ...PLAN_PATHS];
  const server = createServer(definition, {
    ...given,
    ...(entry?.hasLargeEpisodes && {
      maxEpisodeSize: maxFleetRequests,
      ...(maxFleetRequests && { maxTotalSize: FLEETS_AT_ONCE * maxFleetRequests }),
    }),
    guard: { ...given.guard, openPaths },
    store: isReplayable ? await storage?.() : undefined,
    metrics: prometheusMetrics(),
  });
  if (given.mode === 'production') {
    mountDocsAsPage(server.app);
    return server;
  }
  mountPolicyRoutes(server, inBackground(opened.policies, background));
  mountConsole(server.app, isAtRoot);
  if (isAtRoot) mountPlanRoutes(server, work);
  const played = entry && agentsOf(entry.id as EnvironmentId).baselines.length > 0 ? entry : undefined;
  if (played) mountRuntimeRoute(server, real);
  if (!isReplayable) return server;
  if (played) {
    mountBaselineRoutes(server, played, background, outside);
    mountInfoRoute(server, played);
  }
  mountEpisodeRoutes(server);
  return server;
}

/** Requests of a reset, which warms a server up that runs faster than real time, and of a step. */
function callsOf({ timeScale, maxRequestsPerStep }: RealSettings) {
  return { reset: timeScale > 1 ? 141 : 1, step: maxRequestsPerStep };
}

/** `GET /info`: what an agent has to know before it plays, in one answer. */
function mountInfoRoute(server: OpenEnvServer, entry: RegisteredEnvironment): void {
  const { definition } = server;
  const { name, version, description } = definition;
  const schemas = publishedSchemas(definition);
  const tasks = entry.tasks.all();
  const ofTasks = <Value>(value: (task: (typeof tasks)[number]) => Value) =>
    Object.fromEntries(tasks.map((task) => [task.id, value(task)]));
  server.addRoute(
    {
      ...described('info_get'),
      answer: z.object({
        ...{ name: z.string(), version: z.string(), description: z.string() },
        ...{ action_schema: jsonObject, observation_schema: jsonObject, state_schema: jsonObject },
        ...{ reward_weights: jsonObject, episode_lengths: jsonObject, tasks: z.array(jsonObject) },
      }),
    },
    () => ({
      ...{ name, version, description },
      action_schema: schemas.action,
      observation_schema: schemas.observation,
      state_schema: schemas.state,
      reward_weights: ofTasks(entry.rewardWeights),
      episode_lengths: ofTasks(entry.steps),
      tasks: definition.tasks ?? [],
    }),
  );
}

/** `GET /runtime`: whether steps are simulated or measured, on which server, and how many sessions there are. */
function mountRuntimeRoute(server: OpenEnvServer, real: RealSettings | null): void {
  const mode = real === null ? ('sim' as const) : ('real' as const);
  const limits = real && {
    model: real.model,
    max_requests_per_step: real.maxRequestsPerStep,
    max_prompt_tokens: real.maxPromptTokens,
    max_completion_tokens: real.maxCompletionTokens,
  };
  const backend = { mode, provider: real?.provider ?? 'simulator', ...limits };
  const seed = server.definition.resetOptions?.shape.seed?.safeParse(undefined).data ?? null;
  server.addRoute(
    {
      ...described('runtime_get'),
      answer: z.object({
        mode: z.enum(['sim', 'real']),
        backend: z.looseObject({ mode: z.string(), provider: z.string() }),
        seed: z.int().nullable().describe('Seed of a reset without one; null where each draws its own'),
        active_sessions: z.int().min(0),
      }),
    },
    () => ({ mode, backend, seed, active_sessions: server.sessions.size }),
  );
}
