// Serves the no-op environment on a free port until it is killed, and prints its URL. With a path, its sessions are
// kept in that SQLite file.
import { createServer, openSqliteStore } from '@servegym/openenv';
import { prometheusMetrics } from '@servegym/openenv/metrics';
import { noOpEnvironment } from './no-op-environment.ts';

const MAX_SESSIONS = 100_000;

const [path] = process.argv.slice(2);
const server = createServer(noOpEnvironment, {
  maxSessions: MAX_SESSIONS,
  metrics: prometheusMetrics(),
  ...(path !== undefined && { store: openSqliteStore(path) }),
});
const { url } = await server.listen({ port: 0, host: '127.0.0.1' });
console.log(url);
