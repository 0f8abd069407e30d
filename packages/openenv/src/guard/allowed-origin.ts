const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);

/**
 * Whether pages of an origin may use the server: those of the host that the request names, those of this machine, and
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
