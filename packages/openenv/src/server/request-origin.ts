import { isIP, isIPv6 } from 'node:net';
import type { GuardedRequest } from './guard.ts';

/** `localhost` and the names below it always mean this machine (RFC 6761); `*` and `*.example.com` are patterns. */
const PATTERN = /^(?:\*|(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])$/i;

/**
 * Tells by the `Host` header, with or without a port, whether a server may be reached under that name, at an address of
 * this machine. A page of another site whose name is made to resolve to this machine (DNS rebinding) has that name in the
 * header, so that checking it keeps the page out.
 * @throws TypeError naming the pattern that is none
 */
export function hostCheck(patterns: readonly string[]) {
  const wrong = patterns.find((pattern) => !isHostPattern(pattern));
  if (wrong !== undefined) {
    const problem = `Expected \`allowedHosts\` to be names such as gym.example.com, *.example.com or *, without a port, got \`${wrong}\`.`;
    throw new TypeError(problem);
  }
  const allowed = patterns.map((pattern) => pattern.toLowerCase());
  return (host: string, localAddress: string | undefined): boolean => {
    if (allowed.includes('*')) return true;
    const name = /^(\[[^\]]*\]|[^:]*?)\.?(?::\d*)?$/.exec(host)?.[1]?.toLowerCase() ?? '';
    const address = name.replace(/^\[(.*)\]$/, '$1');
    if (name === 'localhost' || name.endsWith('.localhost') || isLoopback(address)) return true;
    // Rebinding needs a name. A server that is reached from other machines has addresses it does not know (NAT, published ports).
    if (isIP(address) !== 0 && localAddress !== undefined && !isLoopback(localAddress)) return true;
    return allowed.some((pattern) =>
      pattern.startsWith('*.') ? name.endsWith(pattern.slice(1)) : name === pattern,
    );
  };
}

/** True for a text that can stand in the list of allowed hosts. */
export function isHostPattern(text: string): boolean {
  return PATTERN.test(text);
}

/** True for an address that only this machine reaches. */
export function isLoopback(address: string): boolean {
  return /^(?:::ffff:)?127\./i.test(address) ? isIP(address) !== 0 : address === '::1';
}

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);

/**
 * True for origins whose pages may use the server: those of the host that the request names, those of this machine, and
 * those of `named` origins. Browsers tell the truth about origins, other clients send none.
 */
export function isAllowedOrigin(
  origin: string,
  ownHost: string | undefined,
  named: readonly string[],
): boolean {
  if (named.includes('*') || named.includes(origin)) return true;
  if (!URL.canParse(origin)) return false;
  const { host, hostname } = new URL(origin);
  return host === ownHost?.toLowerCase() || LOOPBACK.has(hostname);
}

/** Proxies that are trusted at most: more than any deployment has. */
export const MAX_PROXIES = 16;

/** The address that a request comes from: that of the peer, or the one that the outermost trusted proxy saw. */
export function clientAddress(request: GuardedRequest, trustedProxies: number): string {
  const forwarded = forwardedValue(request, 'x-forwarded-for', trustedProxies);
  const address = forwarded ?? request.socket.remoteAddress ?? '';
  // Some proxies append the client's port, which differs from connection to connection.
  return address.replace(/^(\d+(?:\.\d+){3}):\d+$/, '$1').replace(/^\[(.*)\](?::\d+)?$/, '$1');
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
