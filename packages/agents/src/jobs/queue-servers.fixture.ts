import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import getPort from 'get-port';

/** A server of queues in a process of its own, with its data in a folder of its own. */
export interface QueueServer {
  readonly url: string;
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** Redis with an append-only file. */
export async function startRedis(): Promise<QueueServer> {
  const folder = mkdtempSync(join(tmpdir(), 'servegym-redis-'));
  const port = await getPort({ host: '127.0.0.1' });
  const args = [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--dir',
    folder,
    '--appendonly',
    'yes',
    '--save',
    '',
  ];
  const start = () =>
    startProcess(process.env.SERVEGYM_REDIS ?? 'redis-server', args, 'Ready to accept connections');
  return serverOf(`redis://127.0.0.1:${port}`, folder, start);
}

/** The folder of PostgreSQL's programs, where it is installed. */
export function postgresPrograms(): string | undefined {
  try {
    return execFileSync('pg_config', ['--bindir'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    return [18, 17, 16, 15, 14].map((version) => `/usr/lib/postgresql/${version}/bin`).find(existsSync);
  }
}

/** PostgreSQL, which refuses to be root's. */
export async function startPostgres(programs: string): Promise<QueueServer> {
  const folder = mkdtempSync(join(tmpdir(), 'servegym-postgres-'));
  const owner = process.getuid?.() === 0 ? numericId('postgres') : undefined;
  if (owner !== undefined) {
    chmodSync(folder, 0o700);
    chownSync(folder, owner.uid, owner.gid);
  }
  const identity = { ...owner, cwd: folder };
  const data = join(folder, 'data');
  execFileSync(
    join(programs, 'initdb'),
    ['--pgdata', data, '--auth', 'trust', '--username', 'postgres', '--no-sync', '--encoding', 'UTF8'],
    { ...identity, stdio: 'ignore' },
  );
  const port = await getPort({ host: '127.0.0.1' });
  const args = [
    '-D',
    data,
    '-p',
    String(port),
    '-h',
    '127.0.0.1',
    '-k',
    folder,
    '-c',
    'max_connections=200',
    '-c',
    'fsync=off',
  ];
  const start = () => startProcess(join(programs, 'postgres'), args, 'ready to accept connections', identity);
  return serverOf(`postgres://postgres@127.0.0.1:${port}/postgres`, folder, start);
}

async function serverOf(
  url: string,
  folder: string,
  start: () => Promise<ChildProcess>,
): Promise<QueueServer> {
  let server = await start();
  const end = async () => {
    // PostgreSQL waits for its clients on SIGTERM.
    if (server.exitCode !== null || server.signalCode !== null) return;
    server.kill('SIGINT');
    await once(server, 'exit');
  };
  return {
    url,
    async restart() {
      await end();
      server = await start();
    },
    async stop() {
      await end();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function startProcess(
  program: string,
  args: readonly string[],
  ready: string,
  options: { readonly uid?: number; readonly gid?: number; readonly cwd?: string } = {},
): Promise<ChildProcess> {
  const child = spawn(program, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  const told = new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream!.on('data', (chunk) => {
        said += chunk;
        if (said.includes(ready)) resolve();
      });
    }
    child.once('error', reject);
    child.once('exit', () => reject(new Error(`${program} ended:\n${said}`)));
  });
  await told;
  return child;
}

function numericId(user: string): { uid: number; gid: number } {
  const id = (flag: string) => Number(execFileSync('id', [flag, user], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

/** Waits until something is so. @throws when it is not after a minute */
export async function until(what: string, isSo: () => boolean): Promise<void> {
  const end = performance.now() + 60_000;
  while (!isSo()) {
    if (performance.now() > end) throw new Error(`Waited a minute in vain until ${what}`);
    await pause(20);
  }
}
