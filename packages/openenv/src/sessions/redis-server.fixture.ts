import { spawn } from 'node:child_process';
import { once } from 'node:events';
import getPort from 'get-port';

/** A Redis server that keeps nothing on disk, in a process of its own. */
export interface RedisServer {
  readonly url: string;
  stop(): Promise<void>;
}

export async function startRedisServer(): Promise<RedisServer> {
  const port = await getPort({ host: '127.0.0.1' });
  const server = spawn(
    process.env.SERVEGYM_REDIS ?? 'redis-server',
    ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  let said = '';
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.once('exit', () => reject(new Error(`redis-server ended:\n${said}`)));
    server.stdout.on('data', (chunk) => {
      said += chunk;
      if (said.includes('Ready to accept connections')) resolve();
    });
  });
  return {
    url: `redis://127.0.0.1:${port}`,
    async stop() {
      if (server.exitCode !== null) return;
      server.kill();
      await once(server, 'exit');
    },
  };
}
