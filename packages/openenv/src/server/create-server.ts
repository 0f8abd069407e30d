import { getRequestListener } from '@hono/node-server';
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import type { EnvironmentDefinition } from '../protocol/definition.ts';
import { resetOptionsReader } from '../protocol/reset-options.ts';
import { actionReader, publishedSchemas } from '../protocol/schemas.ts';
import { SessionRegistry } from '../sessions/session-registry.ts';
import { DOCS_POLICY, docsPage } from './docs-page.ts';
import { mountEnvironmentRoutes, RequestSessions } from './environment-routes.ts';
import { mountGraderRoute } from './grader-route.ts';
import { Guard, guardRequests } from './guard.ts';
import { mountInformationRoutes, mountTaskRoutes } from './information-routes.ts';
import { JsonRpcEndpoint } from './json-rpc-endpoint.ts';
import { type ListeningServer, type ListenOptions, listen, type PortServer, PortServers } from './listen.ts';
import {
  type AddRoute,
  answerError,
  described,
  httpProblem,
  type RouteTable,
  routeTable,
} from './route-table.ts';
import {
  observeRequests,
  resolveServerOptions,
  type ServerMetrics,
  type ServerOptions,
  type ServerParts,
} from './server-options.ts';
import { SocketServer } from './socket-server.ts';
import { mountMcpRoutes, StreamableHttpEndpoint } from './streamable-http.ts';
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
  const { mode, trustedProxies, logger } = resolved;
  const tools = environmentTools(definition, mode);
  const sessions = new SessionRegistry(definition, resolved);
  const requestSessions = new RequestSessions(sessions, trustedProxies);
  const parts: ServerParts = {
    definition,
    options: resolved,
    sessions,
    requestSessions,
    tools,
    guard: new Guard(resolved.guard, trustedProxies),
    schemas: publishedSchemas(definition),
    readAction: actionReader(definition.action),
    readResetOptions: resetOptionsReader(definition),
    jsonRpc: new JsonRpcEndpoint(sessions, tools),
  };
  const mcp = new StreamableHttpEndpoint(parts);
  const sockets = new SocketServer(parts);
  const metrics = resolved.metrics?.(sessions, sockets);
  const closeListeners: (() => void)[] = [];
  let draining = false;

  const { app, routes } = createApp(parts, metrics);
  if (mode === 'simulation') mountEnvironmentRoutes(routes.add, parts);
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
    listen: (where) => listen(portServers, logger, where),
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
): { readonly app: Hono; readonly routes: RouteTable } {
  const app = new Hono();
  const routes = routeTable(app, definition);
  app.onError((error, context) => answerError(error, context, logger));
  app.notFound((context) => {
    const allowed = routes.methodsOf(context.req.path);
    if (allowed.length === 0 || allowed.includes(context.req.method)) {
      return context.json({ detail: 'Not Found' }, 404);
    }
    return context.json({ detail: 'Method Not Allowed' }, 405, { allow: allowed.join(', ') });
  });
  observeRequests(app, logger, metrics);
  guardRequests(app, guard);
  app.use(
    bodyLimit({
      maxSize: maxMessageBytes,
      onError: () => {
        const detail = `Expected a body of at most ${maxMessageBytes} bytes, got a longer one. Send less, or raise the server's limit.`;
        throw httpProblem(413, detail, 'BODY_TOO_LONG');
      },
    }),
  );
  return { app, routes };
}
