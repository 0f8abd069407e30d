// Serves the no-op environment on a free port until it is killed, and prints its URL. With a path, its sessions are
// kept in that SQLite file.
import { createServer, defineEnvironment, openSqliteStore } from '@servegym/openenv';
import { prometheusMetrics } from '@servegym/openenv/metrics';
import { z } from 'zod';

/** Does nothing, so that what is measured is the server. `no_op_server.py` has the same on OpenEnv's own server. */
const noOpEnvironment = defineEnvironment({
  id: 'no-op',
  version: '1',
  name: 'no-op',
  description: 'Does nothing.',
  action: z.strictObject({ choice: z.int().min(0).max(9) }).meta({ title: 'NoOpAction' }),
  observation: z.object({ value: z.number() }).meta({ title: 'NoOpObservation' }),
  state: z.object({}).meta({ title: 'NoOpState' }),
  create: () => ({
    reset: () => ({ observation: { value: 0 }, reward: null, done: false }),
    step: ({ choice }) => ({ observation: { value: choice }, reward: 1, done: false }),
    state: () => ({}),
  }),
});

const MAX_SESSIONS = 100_000;

const [path] = process.argv.slice(2);
const server = createServer(noOpEnvironment, {
  maxSessions: MAX_SESSIONS,
  metrics: prometheusMetrics(),
  ...(path !== undefined && { store: openSqliteStore(path) }),
});
const { url } = await server.listen({ port: 0, host: '127.0.0.1' });
console.log(url);
