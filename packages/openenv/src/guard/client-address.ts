import type { IncomingMessage } from 'node:http';

/** The address that a request comes from; the proxy's word for it when the proxy is trusted. */
export function clientAddress(request: IncomingMessage, trustProxy: boolean): string {
  const forwarded = request.headers['x-forwarded-for'];
  const first = (Array.isArray(forwarded) ? forwarded[0] : forwarded)?.split(',')[0]?.trim();
  return (trustProxy && first) || (request.socket.remoteAddress ?? '');
}
