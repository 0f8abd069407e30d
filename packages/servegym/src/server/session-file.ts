import { existsSync, mkdirSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { openSqliteStore, type SessionStore, type SqliteSessionStoreOptions } from '@servegym/openenv';
import { InputError } from '../cli/input-error.ts';

const SQLITE_BUSY = 5;

interface Machine {
  readonly platform: NodeJS.Platform;
  readonly home: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** Where a person's programs keep what should outlast them, by the custom of the system. */
export function defaultSessionFile({
  platform = process.platform,
  home = homeFolder(),
  environment = process.env,
}: Partial<Machine> = {}): string {
  return join(stateFolder({ platform, home, environment }), 'servegym', 'sessions.db');
}

/** Opens the file of the sessions, and makes the folder that it lies in. @throws InputError when it cannot be used */
export function openSessionFile(path: string, options: SqliteSessionStoreOptions = {}): SessionStore {
  try {
    makeFolder(dirname(path));
    return openSqliteStore(path, options);
  } catch (error) {
    const reason = ((error as Error).cause ?? error) as Error & { errcode?: number };
    const isLocked = reason.errcode === SQLITE_BUSY;
    const remedy = isLocked ? 'End the program that holds it, or choose' : 'Choose';
    throw new InputError(
      `Sessions cannot be kept in \`${path}\`: ${reason.message}. ${remedy} another file with --store or SERVEGYM_STORE; \`--store memory\` keeps them only while the server runs.`,
      { cause: error },
    );
  }
}

/** Users of containers have no entry in the list of users, and so no home: what is temporary there is all they have. */
function homeFolder(): string {
  try {
    return homedir();
  } catch {
    return tmpdir();
  }
}

function stateFolder({ platform, home, environment }: Machine): string {
  switch (platform) {
    case 'darwin':
      return join(home, 'Library', 'Application Support');
    case 'win32':
      return environment.LOCALAPPDATA || join(home, 'AppData', 'Local');
    default:
      return environment.XDG_STATE_HOME || join(home, '.local', 'state');
  }
}

/** Node's own `recursive` never returns where a parent exists and takes no entries, as below `/proc` or automounts. */
function makeFolder(path: string): void {
  if (existsSync(path)) return;
  const parent = dirname(path);
  if (parent !== path) makeFolder(parent);
  mkdirSync(path, { mode: 0o700 });
}
