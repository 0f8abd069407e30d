import { isIPv6 } from 'node:net';
import type { GuardedRequest } from './guard.ts';

/** Proxies that are trusted at most: more than any deployment has. */
export const MAX_PROXIES = 16;

/** The address that a request comes from: that of the peer, or the one that the outermost trusted proxy saw. */
export function clientAddress(request: GuardedRequest, trustedProxies: number): string {
  const forwarded = forwardedValue(request, 'x-forwarded-for', trustedProxies);
  return withoutPort(forwarded ?? request.socket.remoteAddress ?? '');
}

/**
 * The addresses that count as one client: an IPv6 client may take any address of its /64. IPv4 written as IPv6, as
 * sockets for both have it, is IPv4.
 */
export function clientNetwork(address: string): string {
  if (!isIPv6(address)) return address;
  const [withoutZone] = address.split('%');
  const [head = '', tail = ''] = new URL(`http://[${withoutZone}]`).hostname.slice(1, -1).split('::');
  const left = head.split(':').filter(Boolean);
  const right = tail.split(':').filter(Boolean);
  const groups = [...left, ...new Array(8 - left.length - right.length).fill('0'), ...right];
  if (groups.slice(0, 6).join(':') !== '0:0:0:0:0:ffff') return `${groups.slice(0, 4).join(':')}::/64`;
  return groups
    .slice(6)
    .flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 255])
    .join('.');
}

/** The host that the client asked for. */
export function requestedHost(request: GuardedRequest, trustedProxies: number): string | undefined {
  return forwardedValue(request, 'x-forwarded-host', trustedProxies) ?? request.headers.host;
}

/**
 * Each proxy appends the peer that it sees, so only as many values as there are trusted proxies are theirs, from the
 * right. Anything further left is the client's own text.
 */
function forwardedValue(
  { headers }: GuardedRequest,
  name: 'x-forwarded-for' | 'x-forwarded-host',
  trustedProxies: number,
): string | undefined {
  if (trustedProxies === 0) return undefined;
  const values = [headers[name] ?? []].flat().join(',').split(',');
  const given = values.map((value) => value.trim()).filter((value) => value !== '');
  return given.at(-Math.min(trustedProxies, given.length));
}

/** Some proxies append the client's port, which differs from connection to connection. */
function withoutPort(address: string): string {
  return address.replace(/^(\d+(?:\.\d+){3}):\d+$/, '$1').replace(/^\[(.*)\](?::\d+)?$/, '$1');
}
