import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import getPort from 'get-port';
import { type ServerProcess, startServerProcess } from './server-process.ts';

/** Redis with an append-only file, on a port that nothing listens on. `SERVEGYM_REDIS` is its program. */
export async function startRedis(): Promise<ServerProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'servegym-redis-'));
  const port = await getPort({ host: '127.0.0.1' });
  return startServerProcess({
    url: `redis://127.0.0.1:${port}`,
    folder,
    program: process.env.SERVEGYM_REDIS ?? 'redis-server',
    args: [
      ...['--port', String(port), '--bind', '127.0.0.1', '--dir', folder],
      ...['--appendonly', 'yes', '--save', ''],
    ],
    ready: 'Ready to accept connections',
  });
}
