import { existsSync, mkdirSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { loadOptional } from '@servegym/environments';
import { type Logger, openSqliteStore, type SessionStore } from '@servegym/openenv';
import { maskUrls } from '@servegym/openenv/mask-urls';
import { InputError } from '../cli/failure.ts';

/** A module that needs packages which a plain installation leaves out. @throws InputError `PACKAGE_MISSING` */
export const loadPackages = <Module>(load: () => Promise<Module>, what: string, names: readonly string[]) =>
  loadOptional(
    load,
    what,
    names,
    (message, options) => new InputError(message, { ...options, code: 'PACKAGE_MISSING' }),
  );

const SENTINEL = /^redis(s?)\+sentinel:\/\/(?:([^@/]*)@)?([^@/]+)\/([^/?#]+)(?:\/(\d+))?(?:\?([^#]*))?$/;
const SENTINEL_PORT = 26379;

/** True for an address of Redis, false for a file. */
export function isRedisAddress(fileOrAddress: string): boolean {
  return /^rediss?(\+sentinel)?:\/\//.test(fileOrAddress);
}

/**
 * What a client of Redis connects to: the address itself, or for `redis+sentinel://user:password@host:port,host:port/name/db`
 * the Sentinels to ask which server is the primary of that name. User and password are those of the servers; those of the
 * Sentinels are `?sentinel_user=...&sentinel_password=...`. `rediss+sentinel://` speaks TLS with both; a CA of one's own is
 * `NODE_EXTRA_CA_CERTS`, as for `rediss://`.
 * @throws InputError
 */
export function redisConnection(address: string) {
  if (!/^rediss?\+sentinel:/.test(address)) return address;
  const [, tls, login, hosts = '', name, db, query] = SENTINEL.exec(address) ?? [];
  const urls = hosts.split(',').map((host) => URL.parse(`redis://${host}`));
  const { sentinel_user, sentinel_password, ...others } = Object.fromEntries(new URLSearchParams(query));
  if (name === undefined || urls.some((url) => !url?.hostname) || Object.keys(others).length > 0)
    throw new InputError(
      `Expected redis+sentinel://host:port,host:port/name, with the name that the Sentinels have for the servers, and maybe ?sentinel_user=...&sentinel_password=..., got \`${maskUrls(address)}\``,
    );
  const [username, password] = (login ?? ':').split(':').map(decodeURIComponent);
  return {
    sentinels: urls.map((url) => ({ host: url!.hostname, port: Number(url!.port) || SENTINEL_PORT })),
    name,
    ...(db !== undefined && { db: Number(db) }),
    ...(username && { username }),
    ...(password && { password }),
    ...(sentinel_user && { sentinelUsername: sentinel_user }),
    ...(sentinel_password && { sentinelPassword: sentinel_password }),
    ...(tls && { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true }),
  };
}

const SQLITE_BUSY = 5;

/** Any URL; the path of a file on a Windows drive is none. */
const URL_SCHEME = /^[a-z][a-z\d+.-]+:\/\//i;

interface StorageOptions {
  /** Limit of the file, bytes; each client may have a quarter of it, in Redis too. */
  readonly maxBytes?: number | undefined;
  readonly logger?: Logger | undefined;
}

/**
 * One place where the sessions of several servers are kept: a SQLite file, or `redis://...`. Nothing is opened before the first needs
 * it. Each call answers the store for one more user; it closes when the last of them closes theirs.
 * @throws InputError for a URL of anything but Redis; of a call, when it cannot be used
 */
export function sharedStorage(address: string, options: StorageOptions = {}): () => Promise<SessionStore> {
  if (URL_SCHEME.test(address) && !isRedisAddress(address))
    throw new InputError(
      `Expected --store or SERVEGYM_STORE to be a file, redis://, rediss://, redis+sentinel:// or \`memory\`, got \`${maskUrls(address)}\`. Sessions are kept in SQLite files and in Redis only`,
    );
  let opened: Promise<SessionStore> | undefined;
  let users = 0;
  return async () => {
    opened ??= openStorage(address, options);
    const store = await opened;
    users++;
    let close: (() => Promise<void>) | undefined = async () => {
      close = undefined;
      users--;
      if (users === 0) await store.close();
    };
    return {
      open: (id, environment, client) => store.open(id, environment, client),
      take: (id) => store.take(id),
      remove: (id) => store.remove(id),
      condition: () => store.condition!(),
      close: async () => close?.(),
    };
  };
}

/** Opens where sessions are kept: a SQLite file, or Redis by its address. @throws InputError when it cannot be used */
async function openStorage(fileOrAddress: string, options: StorageOptions): Promise<SessionStore> {
  if (!isRedisAddress(fileOrAddress)) return openSessionFile(fileOrAddress, options);
  const { maxBytes, logger } = options;
  const load = () => import('@servegym/openenv/redis');
  const { openRedisStore } = await loadPackages(load, 'Sessions in Redis need', ['ioredis']);
  try {
    return await openRedisStore(redisConnection(fileOrAddress), {
      ...(maxBytes !== undefined && { maxClientBytes: maxBytes / 4 }),
      logger,
    });
  } catch (error) {
    throw new InputError(
      `Sessions cannot be kept in Redis: ${(error as Error).message}. Start Redis there, or correct --store or SERVEGYM_STORE`,
      { code: 'STORE_ERROR', cause: error },
    );
  }
}

/** Default file of sessions, in the folder in which programs keep state by the custom of the system. */
export function defaultSessionFile({
  platform = process.platform,
  home = homeFolder(),
  environment = process.env as Readonly<Record<string, string | undefined>>,
} = {}): string {
  const folders: Readonly<Partial<Record<NodeJS.Platform, string>>> = {
    darwin: join(home, 'Library', 'Application Support'),
    win32: environment.LOCALAPPDATA || join(home, 'AppData', 'Local'),
  };
  const folder = folders[platform] ?? (environment.XDG_STATE_HOME || join(home, '.local', 'state'));
  return join(folder, 'servegym', 'sessions.db');
}

/** Opens the file of the sessions, and makes the folder that it lies in. @throws InputError when it cannot be used */
export function openSessionFile(
  path: string,
  options: Parameters<typeof openSqliteStore>[1] = {},
): SessionStore {
  try {
    makeFolder(dirname(path));
    return openSqliteStore(path, options);
  } catch (error) {
    const reason = ((error as Error).cause ?? error) as Error & { errcode?: number };
    const isLocked = reason.errcode === SQLITE_BUSY;
    const remedy = isLocked ? 'End the program that holds it, or choose' : 'Choose';
    throw new InputError(
      `Sessions cannot be kept in \`${path}\`: ${reason.message}. ${remedy} another file with --store or SERVEGYM_STORE; \`--store memory\` keeps them only while the server runs.`,
      { code: 'STORE_ERROR', cause: error },
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

/** Node's own `recursive` never returns where a parent exists and takes no entries, as below `/proc` or automounts. */
function makeFolder(path: string): void {
  if (existsSync(path)) return;
  const parent = dirname(path);
  if (parent !== path) makeFolder(parent);
  mkdirSync(path, { mode: 0o700 });
}
