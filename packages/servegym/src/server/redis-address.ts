import { maskUrls } from '@servegym/openenv/mask-urls';
import { InputError } from '../cli/failure.ts';

const SENTINEL = /^redis\+sentinel:\/\/(?:([^@/]*)@)?([^@/]+)\/([^/?#]+)(?:\/(\d+))?$/;
const SENTINEL_PORT = 26379;

/** True for an address of Redis, false for a file. */
export function isRedisAddress(fileOrAddress: string): boolean {
  return /^redis(s|\+sentinel)?:\/\//.test(fileOrAddress);
}

/**
 * What a client of Redis connects to: the address itself, or for `redis+sentinel://user:password@host:port,host:port/name/db`
 * the Sentinels to ask which server is the primary of that name. User and password are those of the servers.
 * @throws InputError
 */
export function redisConnection(address: string) {
  if (!address.startsWith('redis+sentinel:')) return address;
  const [, login, hosts = '', name, db] = SENTINEL.exec(address) ?? [];
  const urls = hosts.split(',').map((host) => URL.parse(`redis://${host}`));
  if (name === undefined || urls.some((url) => !url?.hostname))
    throw new InputError(
      `Expected redis+sentinel://host:port,host:port/name, with the name that the Sentinels have for the servers, got \`${maskUrls(address)}\``,
    );
  const [username, password] = (login ?? ':').split(':').map(decodeURIComponent);
  return {
    sentinels: urls.map((url) => ({ host: url!.hostname, port: Number(url!.port) || SENTINEL_PORT })),
    name,
    ...(db !== undefined && { db: Number(db) }),
    ...(username && { username }),
    ...(password && { password }),
  };
}
