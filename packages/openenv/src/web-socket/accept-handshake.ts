import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** RFC 6455, section 1.3. */
const KEY_SUFFIX = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const KEY = /^[+/0-9A-Za-z]{22}==$/;
const VERSION = '13';
/** A token of HTTP (RFC 9110, section 5.6.2). */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

export interface HandshakeRefusal {
  readonly status: number;
  readonly detail: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What is wrong with the request for a WebSocket; `null` when nothing is. */
export function handshakeRefusal({ method, headers }: IncomingMessage): HandshakeRefusal | null {
  if (method !== 'GET')
    return { status: 405, detail: `Expected the method GET, got ${method}`, headers: { allow: 'GET' } };
  if (headers.upgrade?.toLowerCase() !== 'websocket') {
    return { status: 400, detail: 'Expected the header `upgrade: websocket`' };
  }
  if (!KEY.test(headers['sec-websocket-key'] ?? '')) {
    return { status: 400, detail: 'Expected a header `sec-websocket-key` of 16 bytes in base64' };
  }
  if (headers['sec-websocket-version'] !== VERSION) {
    return {
      status: 426,
      detail: `Expected the header \`sec-websocket-version: ${VERSION}\``,
      headers: { 'sec-websocket-version': VERSION },
    };
  }
  const protocol = firstProtocol(headers);
  if (protocol !== undefined && !TOKEN.test(protocol)) {
    return { status: 400, detail: 'Expected the header `sec-websocket-protocol` to be a list of tokens' };
  }
  return null;
}

/** The answer to a request that `handshakeRefusal` finds nothing wrong with. Takes the first protocol that is offered. */
export function handshakeAnswer({ headers }: IncomingMessage, ...more: readonly string[]): string {
  const accept = hash('sha1', headers['sec-websocket-key'] + KEY_SUFFIX, 'base64');
  const protocol = firstProtocol(headers);
  const lines = [
    'HTTP/1.1 101 Switching Protocols',
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Accept: ${accept}`,
    ...(protocol === undefined ? [] : [`Sec-WebSocket-Protocol: ${protocol}`]),
    ...more,
  ];
  return `${lines.join('\r\n')}\r\n\r\n`;
}

function firstProtocol(headers: IncomingMessage['headers']): string | undefined {
  return headers['sec-websocket-protocol']?.replace(/,.*/, '').trim();
}
