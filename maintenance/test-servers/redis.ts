import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import getPort from 'get-port';

export type RedisProcess = Awaited<ReturnType<typeof startRedis>>;

/**
 * Redis with an append-only file in a folder of its own, on a port that nothing listens on. `SERVEGYM_REDIS` is its
 * program.
 */
export function startRedis(...options: string[]) {
  return launch(() => ['--appendonly', 'yes', '--save', '', ...options], /Ready to accept connections/);
}

/**
 * A Sentinel that alone promotes a replica when the primary, named `sessions`, is away for a second.
 * @param passwords of the primary and of the Sentinel
 */
export function startSentinel(primary: RedisProcess, passwords?: readonly [primary: string, own: string]) {
  const port = new URL(primary.url).port;
  return launch((folder) => {
    const file = join(folder, 'sentinel.conf');
    writeFileSync(
      file,
      `sentinel monitor sessions 127.0.0.1 ${port} 1
sentinel down-after-milliseconds sessions 1000
sentinel failover-timeout sessions 5000
${passwords ? `sentinel auth-pass sessions ${passwords[0]}\nrequirepass ${passwords[1]}\n` : ''}`,
    );
    return [file, '--sentinel'];
  }, /\+monitor master/);
}

async function launch(argsIn: (folder: string) => string[], ready: RegExp) {
  const folder = mkdtempSync(join(tmpdir(), 'servegym-redis-'));
  const port = await getPort({ host: '127.0.0.1' });
  const program = process.env.SERVEGYM_REDIS ?? 'redis-server';
  const args = [...argsIn(folder), '--port', String(port), '--bind', '127.0.0.1', '--dir', folder];
  const start = async () => {
    const child = spawn(program, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    await new Promise<void>((resolve, reject) => {
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk) => {
          said += chunk;
          if (ready.test(said)) resolve();
        });
      child.once('error', reject);
      child.once('exit', () => reject(new Error(`${program} ended:\n${said}`)));
    });
    return child;
  };
  let server = await start();
  const end = async () => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    server.kill('SIGINT');
    await once(server, 'exit');
  };
  return {
    url: `redis://127.0.0.1:${port}`,
    get pid() {
      return server.pid!;
    },
    /** Ends it and starts it again, with the data that it has kept. */
    async restart() {
      await end();
      server = await start();
    },
    /** Ends it and removes its data. */
    async stop() {
      await end();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
