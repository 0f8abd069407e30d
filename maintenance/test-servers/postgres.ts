import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import getPort from 'get-port';
import { type ServerProcess, startServerProcess } from './server-process.ts';

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

/** PostgreSQL, which refuses to be root's, on a port that nothing listens on. */
export async function startPostgres(programs: string): Promise<ServerProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'servegym-postgres-'));
  const owner = process.getuid?.() === 0 ? numericId('postgres') : undefined;
  if (owner !== undefined) {
    chmodSync(folder, 0o700);
    chownSync(folder, owner.uid, owner.gid);
  }
  const data = join(folder, 'data');
  execFileSync(
    join(programs, 'initdb'),
    ['--pgdata', data, '--auth', 'trust', '--username', 'postgres', '--no-sync', '--encoding', 'UTF8'],
    { ...owner, cwd: folder, stdio: 'ignore' },
  );
  const port = await getPort({ host: '127.0.0.1' });
  return startServerProcess({
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    folder,
    program: join(programs, 'postgres'),
    args: [
      ...['-D', data, '-p', String(port), '-h', '127.0.0.1', '-k', folder],
      ...['-c', 'max_connections=200', '-c', 'fsync=off'],
    ],
    ready: 'ready to accept connections',
    owner,
  });
}

function numericId(user: string): { uid: number; gid: number } {
  const id = (flag: string) => Number(execFileSync('id', [flag, user], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}
