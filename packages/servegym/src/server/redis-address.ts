import { maskUrls } from '@servegym/openenv/mask-urls';
import { InputError } from '../cli/failure.ts';

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
