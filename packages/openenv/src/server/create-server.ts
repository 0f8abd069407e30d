import { setTimeout as sleep } from 'node:timers/promises';
import { getRequestListener } from '@hono/node-server';
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { routePath } from 'hono/route';
import type { EnvironmentDefinition } from '../protocol/definition.ts';
import { withDefaults } from '../protocol/read-json.ts';
import { resetOptionsReader } from '../protocol/reset-options.ts';
import { actionReader, publishedSchemas } from '../protocol/schemas.ts';
import { SessionRegistry } from '../sessions/session-registry.ts';
import { failureLogger, type Logger, type SessionStore } from '../sessions/session-store.ts';
import { DOCS_POLICY, docsPage } from './docs-page.ts';
import { mountEnvironmentRoutes, type RequestSessions, requestSessionsOf } from './environment-routes.ts';
import { mountGraderRoute } from './episode-routes.ts';
import { Guard, type GuardOptions, guardRequests } from './guard.ts';
import { mountInformationRoutes, mountTaskRoutes } from './information-routes.ts';
import { type ListeningServer, type ListenOptions, listen, type PortServer, PortServers } from './listen.ts';
import { jsonRpcEndpoint, mountMcpRoutes, streamableHttp } from './mcp.ts';
import { MAX_PROXIES } from './request-origin.ts';
import { type AddRoute, answerError, described, httpProblem, loggedPath, routeTable } from './route-table.ts';
import { SocketServer } from './socket-server.ts';
import { environmentTools } from './tools.ts';

/** A server of one environment. Nothing listens until `listen` is called. */
export interface OpenEnvServer {
  readonly definition: EnvironmentDefinition;
  /** The HTTP application. Pages and files can be mounted on it before listening; for an API there is `addRoute`. */
  readonly app: Hono;
  readonly sessions: SessionRegistry;
  /** Finds the session and the client of a request. */
  readonly requestSessions: RequestSessions;
  /** Adds a route, which then stands in `/openapi.json` and `/docs` too. */
  readonly addRoute: AddRoute;
  /**
   * Serves another environment through the port of this server, below `path`: `/name/reset`, `/name/ws`. The other
   * server drains and closes with this one, and never listens itself.
   * @throws TypeError when the path is no single step such as `/name`, or taken, or the other server shares a port already
   */
  mount(path: string, other: Pick<OpenEnvServer, 'definition' | 'close'>): void;
  listen(options?: ListenOptions): Promise<ListeningServer>;
  /** Calls a listener when the server has closed, however it was. */
  onClose(listener: () => void): void;
  /** Closes the sessions of a server that never listened. */
  close(): Promise<void>;
}

/** Mounts each server on the port of another. */
const MOUNT_FUNCTIONS = new WeakMap<object, (portServers: PortServers, path: string) => void>();

/** Makes a server that speaks the whole of OpenEnv for one environment. */
export function createServer(definition: EnvironmentDefinition, options: ServerOptions = {}): OpenEnvServer {
  const resolved = resolveServerOptions(options);
  const parts = serverParts(definition, resolved);
  const { sessions, requestSessions } = parts;
  const mcp = streamableHttp(parts);
  const sockets = new SocketServer(parts);
  const metrics = resolved.metrics?.(sessions, sockets);
  const closeListeners: (() => void)[] = [];
  let draining = false;

  const { app, routes } = createApp(parts, metrics);
  if (resolved.mode === 'simulation') mountEnvironmentRoutes(routes.add, parts);
  if (definition.grade) {
    mountGraderRoute(routes.add, parts);
  } else {
    app.post('/grader', () => {
      throw httpProblem(501, `${definition.name} has no grader.`);
    });
  }
  const environments = () => portServers.entries(self);
  mountInformationRoutes(routes.add, parts, () => draining, environments);
  mountMcpRoutes(routes.add, parts, mcp);
  mountTaskRoutes(routes.add, definition);
  if (metrics) {
    routes.add({ ...described('metrics_get'), answer: { mediaType: 'text/plain' } }, async (context) =>
      context.body(await metrics.text(), 200, { 'content-type': metrics.contentType }),
    );
  }
  app.get('/openapi.json', (context) => context.json(routes.document()));
  app.get('/docs', (context) => {
    context.header('content-security-policy', DOCS_POLICY);
    return context.html(docsPage(routes.document()));
  });
  app.get('/redoc', (context) => context.redirect('docs', 307));

  const closeAll = async () => {
    await sockets.close();
    await mcp.close();
    await sessions.shutDown();
    for (const listener of closeListeners.splice(0)) listener();
  };

  const self: PortServer = {
    definition,
    answer: getRequestListener(app.fetch),
    sockets,
    beginDrain() {
      draining = true;
      sessions.drain();
    },
    close: closeAll,
  };
  let portServers = new PortServers(self);

  const server: OpenEnvServer = {
    definition,
    app,
    sessions,
    requestSessions,
    addRoute: routes.add,
    onClose: (listener) => void closeListeners.push(listener),
    close: closeAll,
    mount(path, other) {
      const mountOn = MOUNT_FUNCTIONS.get(other);
      if (mountOn === undefined) throw new TypeError('Expected a server that `createServer` made');
      mountOn(portServers, path);
    },
    listen: (where) => listen(portServers, resolved.logger, where),
  };
  MOUNT_FUNCTIONS.set(server, (port, path) => {
    if (port === portServers || portServers.all.length > 1) {
      throw new TypeError('Expected another server, which shares its port with none yet');
    }
    port.add(path, self);
    portServers = port;
  });
  return server;
}

/** An application without routes, and a table for them: guarded, observed, with errors and limits in common. */
function createApp(
  { definition, guard, options: { logger, maxMessageBytes } }: ServerParts,
  metrics: ServerMetrics | undefined,
) {
  const app = new Hono();
  const routes = routeTable(app, definition);
  app.onError((error, context) => answerError(error, context, logger));
  app.notFound((context) => {
    const allowed = routes.methodsOf(context.req.path);
    // A browser that was given the address of the server.
    if (context.req.path === '/' && context.req.method === 'GET') return context.redirect('docs', 307);
    if (allowed.length === 0 || allowed.includes(context.req.method)) {
      return context.json({ detail: 'Not Found' }, 404);
    }
    return context.json({ detail: 'Method Not Allowed' }, 405, { allow: allowed.join(', ') });
  });
  observeRequests(app, logger, metrics);
  guardRequests(app, guard);
  const countBody = bodyLimit({
    maxSize: maxMessageBytes,
    onError: async (context) => {
      if (!(await isReadToEnd(context.req.raw.body))) context.header('connection', 'close');
      const detail = `Expected a body of at most ${maxMessageBytes} bytes, got a longer one. Send less, or raise the server's limit.`;
      throw httpProblem(413, detail, 'BODY_TOO_LONG');
    },
  });
  app.use(function limitBody(context, next) {
    // A body that is looked at here is read as a web stream, which takes several times as long.
    const { 'content-length': length = 0, 'transfer-encoding': coding } = context.req.header();
    return coding === undefined && Number(length) <= maxMessageBytes ? next() : countBody(context, next);
  });
  return { app, routes };
}

/** Drops the rest of a body within 500 ms: a client that still writes sees no answer. False when that is too short. */
async function isReadToEnd(body: ReadableStream<Uint8Array> | null): Promise<boolean> {
  const toEnd = body?.pipeTo(new WritableStream()).then(
    () => true,
    () => false,
  );
  return Promise.race([toEnd ?? true, sleep(500, false, { ref: false })]);
}

/** The numbers of a server, as `GET /metrics` answers them. */
interface ServerMetrics {
  readonly contentType: string;
  observeRequest(method: string, route: string, status: number, seconds: number): void;
  text(): Promise<string>;
}

/**
 * Makes the metrics of one server. `prometheusMetrics()` of `@servegym/openenv/metrics` is one. The figures of the sessions
 * are read when the metrics are asked for, so that the hot path only counts.
 */
export type MetricsFactory = (sessions: SessionRegistry, sockets: { readonly size: number }) => ServerMetrics;

function observeRequests(app: Hono, logger: Logger, metrics?: ServerMetrics): void {
  app.use(async function observeRequest(context, next) {
    const startedAt = performance.now();
    await next();
    const ms = performance.now() - startedAt;
    const { method } = context.req;
    const path = loggedPath(context);
    const { status } = context.res;
    // The last route is the one that answered; the patterns keep the number of series small.
    const route = status === 404 ? 'unknown' : routePath(context, -1);
    metrics?.observeRequest(method, route, status, ms / 1000);
    // Machines ask for these all the time.
    if (path !== '/health' && path !== '/metrics') {
      logger.info({ method, path, status, ms: Math.round(ms * 1000) / 1000 }, 'request answered');
    }
  });
}

const DEFAULTS = {
  /** `production` leaves out `/reset`, `/step` and `/state`. */
  mode: 'simulation' as 'simulation' | 'production',
  /** Most sessions at once, over WebSocket, HTTP and MCP together. */
  maxSessions: 1024,
  /** Keeps sessions beyond their time in memory and the end of the process. Default none. */
  store: undefined as SessionStore | undefined,
  /** A session that no socket holds leaves memory after resting this long, ms. Default one hour; `null`: never. */
  idleTimeoutMs: 3_600_000 as number | null,
  /** A socket that sends nothing for this long is closed with its session, ms. Default `null`: never. */
  socketIdleTimeoutMs: null as number | null,
  /** Longest request body and WebSocket message, bytes. Default 1 MiB. */
  maxMessageBytes: 1024 * 1024,
  /** Largest episode, in the units of the environment's `episodeSize`. Default: no limit. */
  maxEpisodeSize: Number.POSITIVE_INFINITY,
  /** Most that all episodes in memory have together, in the same units. Default: no limit. */
  maxTotalSize: Number.POSITIVE_INFINITY,
  /** A socket is pinged this often and dropped when a ping stays unanswered until the next, ms. */
  pingIntervalMs: 20_000,
  /** Access rules. Default: everybody, from pages of the server's own host and of this machine. */
  guard: {} as GuardOptions,
  /** Log of the server. A pino logger will do. Default: failures on standard error, with their stack. */
  logger: failureLogger,
  /** Answers `GET /metrics`: `prometheusMetrics()` of `@servegym/openenv/metrics`. Default: there is no such route. */
  metrics: undefined as MetricsFactory | undefined,
  /** Proxies of yours before the server, which set `x-forwarded-for` and `x-forwarded-host`; 0 ignores these headers. */
  trustedProxies: 0,
};
type ResolvedServerOptions = Readonly<typeof DEFAULTS>;
/** Options of a server. Every field has a default. */
export type ServerOptions = Partial<ResolvedServerOptions>;

/** The parts of a server, as its routes and sockets use them. */
export type ServerParts = Readonly<ReturnType<typeof serverParts>>;

function serverParts(definition: EnvironmentDefinition, options: ResolvedServerOptions) {
  const { mode, trustedProxies } = options;
  const tools = environmentTools(definition, mode);
  const sessions = new SessionRegistry(definition, options);
  return {
    ...{ definition, options, sessions, tools },
    requestSessions: requestSessionsOf(sessions, trustedProxies),
    guard: new Guard(options.guard, trustedProxies),
    schemas: publishedSchemas(definition),
    readAction: actionReader(definition.action),
    readResetOptions: resetOptionsReader(definition),
    jsonRpc: jsonRpcEndpoint(sessions, tools),
  };
}

/** Fills in the defaults. @throws TypeError naming the option that makes no sense. */
function resolveServerOptions(options: ServerOptions): ResolvedServerOptions {
  const resolved = withDefaults(DEFAULTS, options);
  const { mode, trustedProxies, metrics } = resolved;
  if (mode !== 'simulation' && mode !== 'production') {
    throw new TypeError(`Expected \`mode\` to be 'simulation' or 'production', got '${mode}'.`);
  }
  for (const [name, isValid] of Object.entries(POSITIVE_OPTIONS)) {
    const value = resolved[name as keyof typeof POSITIVE_OPTIONS];
    if (isValid(value) && (value === null || value > 0)) continue;
    throw new TypeError(`Expected \`${name}\` to be a number above 0, got \`${value}\` (${typeof value}).`);
  }
  if (metrics !== undefined && typeof metrics !== 'function') {
    const problem = `Expected \`metrics\` to be \`prometheusMetrics()\` of @servegym/openenv/metrics, or to be left out, got \`${metrics}\`.`;
    throw new TypeError(problem);
  }
  if (!Number.isInteger(trustedProxies) || trustedProxies < 0 || trustedProxies > MAX_PROXIES) {
    const problem = `Expected \`trustedProxies\` to be a whole number from 0 to ${MAX_PROXIES}, got \`${trustedProxies}\` (${typeof trustedProxies}).`;
    throw new TypeError(problem);
  }
  return resolved;
}

const isNumber = (value: unknown) => typeof value === 'number' && !Number.isNaN(value);
const isTimeout = (value: unknown) => value === null || Number.isFinite(value);
/** Options that are above 0, and what else each must be. */
const POSITIVE_OPTIONS = {
  maxSessions: Number.isSafeInteger,
  maxMessageBytes: Number.isSafeInteger,
  maxEpisodeSize: isNumber,
  maxTotalSize: isNumber,
  pingIntervalMs: Number.isFinite,
  idleTimeoutMs: isTimeout,
  socketIdleTimeoutMs: isTimeout,
};
