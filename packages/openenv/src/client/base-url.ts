/** The HTTP URL under which a server's paths stand. Takes `http(s)` and `ws(s)` URLs, with or without a slash at the end. */
export function baseUrl(url: string | URL): URL {
  const base = new URL(url);
  base.protocol = base.protocol.replace(/^ws/, 'http');
  if (!base.pathname.endsWith('/')) base.pathname += '/';
  base.search = '';
  base.hash = '';
  return base;
}

/** URL of a WebSocket of a server. `base` is that of `baseUrl`. */
export function socketUrl(base: URL, path: 'ws' | 'mcp'): URL {
  const url = new URL(path, base);
  url.protocol = base.protocol === 'https:' ? 'wss:' : 'ws:';
  return url;
}
