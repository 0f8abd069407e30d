import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type RawData, WebSocket, WebSocketServer } from 'ws';

/** A message on its way, parsed where it is JSON. */
// biome-ignore lint/suspicious/noExplicitAny: the tests change whatever they like in it
type PassingMessage = any;

/** Defects of a server. */
export interface Flaws {
  /** Changes what the client sends, before the server sees it; `undefined` swallows it. */
  readonly toServer?: (message: PassingMessage) => PassingMessage | undefined;
  /** Changes what the server sends; `undefined` swallows it. */
  readonly toClient?: (message: PassingMessage) => PassingMessage | undefined;
  /** True for messages of the server that the client gets twice. */
  readonly repeats?: (message: PassingMessage) => boolean;
  /** Changes the body of an HTTP answer. */
  readonly answer?: (path: string, body: PassingMessage) => PassingMessage;
  /** Closes the sockets of clients with this code instead of the server's own. */
  readonly closeCode?: number;
  /** Does not notice when a client goes away. */
  readonly keepsLostSessions?: boolean;
}

/** Stands before a good server and makes it a bad one. */
export async function startFlawedServer(
  url: string,
  flaws: Flaws,
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const http = createHttpServer(async (request, response) => {
    const body = await text(request);
    const { host, connection, 'content-length': length, ...headers } = request.headers;
    const answer = await fetch(url + request.url, {
      method: request.method ?? 'GET',
      headers: headers as Record<string, string>,
      ...(body !== '' && { body }),
    });
    const type = answer.headers.get('content-type') ?? '';
    const answered = await answer.text();
    const change = flaws.answer && type.startsWith('application/json');
    response.writeHead(answer.status, { 'content-type': type });
    response.end(change ? JSON.stringify(flaws.answer(request.url ?? '', JSON.parse(answered))) : answered);
  });
  const clients = new WebSocketServer({ server: http });
  const upstreams = new Set<WebSocket>();
  clients.on('connection', (client, request) => {
    const upstream = new WebSocket(`${url.replace('http', 'ws')}${request.url}`);
    upstreams.add(upstream);
    const opened = once(upstream, 'open');
    client.on('message', async (data, isBinary) => {
      const message = changed(flaws.toServer, data, isBinary);
      await opened;
      if (message !== undefined) upstream.send(message, { binary: isBinary });
    });
    upstream.on('message', (data, isBinary) => {
      const message = changed(flaws.toClient, data, isBinary);
      if (message === undefined) return;
      client.send(message);
      if (flaws.repeats?.(parsed(message))) client.send(message);
    });
    upstream.on('close', (code) => client.close(flaws.closeCode ?? code));
    client.on('close', () => {
      if (!flaws.keepsLostSessions) upstream.close();
    });
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    async close() {
      for (const socket of [...clients.clients, ...upstreams]) socket.terminate();
      http.close();
      http.closeAllConnections();
      await once(http, 'close');
    },
  };
}

/** The message that is passed on; bytes are passed on unchanged. */
function changed(change: Flaws['toClient'], data: RawData, isBinary: boolean): string | Buffer | undefined {
  const original = data as Buffer;
  if (!change || isBinary) return isBinary ? original : original.toString();
  const message = change(parsed(original.toString()));
  return typeof message === 'object' ? JSON.stringify(message) : message;
}

function parsed(message: string | Buffer): PassingMessage {
  try {
    return JSON.parse(message.toString());
  } catch {
    return message;
  }
}

async function text(request: IncomingMessage): Promise<string> {
  let body = '';
  for await (const chunk of request) body += chunk;
  return body;
}
