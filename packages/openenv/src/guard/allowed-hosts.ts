import { isIP } from 'node:net';

/** `localhost` and the names below it always mean this machine (RFC 6761); `*` and `*.example.com` are patterns. */
const PATTERN = /^(?:\*|(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])$/i;

/**
 * Names under which a server may be reached. A page of another site whose name is made to resolve to this machine (DNS
 * rebinding) has that name in its `Host` header, so that checking the header keeps it out.
 */
export class AllowedHosts {
  readonly #patterns: readonly string[];

  /** @throws TypeError naming the pattern that is none. */
  constructor(patterns: readonly string[]) {
    const wrong = patterns.find((pattern) => !isHostPattern(pattern));
    if (wrong !== undefined) {
      throw new TypeError(
        `Expected \`allowedHosts\` to be names such as gym.example.com, *.example.com or *, without a port, got \`${wrong}\`.`,
      );
    }
    this.#patterns = patterns.map((pattern) => pattern.toLowerCase());
  }

  /**
   * @param host Value of the `Host` header, with or without a port.
   * @param localAddress Address of this machine at which the connection arrived.
   */
  allows(host: string, localAddress: string | undefined): boolean {
    if (this.#patterns.includes('*')) return true;
    const name = /^(\[[^\]]*\]|[^:]*?)\.?(?::\d*)?$/.exec(host)?.[1]?.toLowerCase() ?? '';
    const address = name.replace(/^\[(.*)\]$/, '$1');
    if (name === 'localhost' || name.endsWith('.localhost') || isLoopback(address)) return true;
    // Rebinding needs a name. A server that is reached from other machines has addresses it does not know (NAT, published ports).
    if (isIP(address) !== 0 && localAddress !== undefined && !isLoopback(localAddress)) return true;
    return this.#patterns.some((pattern) =>
      pattern.startsWith('*.') ? name.endsWith(pattern.slice(1)) : name === pattern,
    );
  }
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
