import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import getPort from 'get-port';

/** Redis with an append-only file in a folder of its own, on a port that nothing listens on. */
export async function startRedis(): Promise<{ url: string; pid: number; stop: () => Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), 'servegym-scaling-'));
  const port = await getPort({ host: '127.0.0.1' });
  const args = ['--port', String(port), '--dir', folder, '--appendonly', 'yes', '--save', ''];
  const server = spawn(process.env.SERVEGYM_REDIS ?? 'redis-server', args, {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let said = '';
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.stdout.on('data', (chunk) => {
      said += chunk;
      if (said.includes('Ready to accept connections')) resolve();
    });
  });
  return {
    url: `redis://127.0.0.1:${port}`,
    pid: server.pid!,
    async stop() {
      server.kill();
      await once(server, 'exit');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
