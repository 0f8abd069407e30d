import type { GuardedRequest } from './guard.ts';

/** Proxies that are trusted at most: more than any deployment has. */
export const MOST_PROXIES = 16;

/** The address that a request comes from: that of the peer, or the one that the outermost trusted proxy saw. */
export function clientAddress(request: GuardedRequest, trustedProxies: number): string {
  const forwarded = forwardedValue(request, 'x-forwarded-for', trustedProxies);
  return withoutPort(forwarded ?? request.socket.remoteAddress ?? '');
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
