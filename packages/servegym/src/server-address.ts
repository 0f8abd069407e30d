import { InvalidArgumentError } from 'commander';

/** An argument parser for the address of a server, `http(s)` or `ws(s)`. The base gets a slash at its end. */
export function serverAddress(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^(http|ws)s?:$/.test(url.protocol)) {
    throw new InvalidArgumentError(
      `Expected an address that begins with http:// or https://, got \`${text}\`.`,
    );
  }
  const base = new URL(url);
  base.protocol = url.protocol.replace(/^ws/, 'http');
  if (!base.pathname.endsWith('/')) base.pathname += '/';
  base.search = '';
  base.hash = '';
  return base;
}

/** Where a WebSocket of a server is, by its path without a slash. */
export function socketAddress(base: URL, path: 'ws' | 'mcp'): string {
  const url = new URL(path, base);
  url.protocol = base.protocol === 'https:' ? 'wss:' : 'ws:';
  return url.href;
}
