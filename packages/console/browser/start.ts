import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, afterEach } from 'node:test';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { launchChromium } from '../../../maintenance/test-servers/chromium.ts';
import { type ServeProcess, startServe, startServeWith } from '../../../maintenance/test-servers/servegym.ts';
import { type ConsolePage, openConsole } from './console-page.ts';

/** Closes what the test that runs has opened. */
const closings: (() => unknown)[] = [];
afterEach(async () => {
  const failures: unknown[] = [];
  // The last first: pages before the servers that they are of.
  for (const close of closings.splice(0).reverse()) {
    try {
      await close();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
});

/** Calls `close` after the test that runs. */
export function closeAfterTest(close: () => unknown): void {
  closings.push(close);
}

/** Opens a page for the test that runs. At its end the page must have no faults. */
export async function openPage(
  browser: Browser,
  url: string,
  options?: BrowserContextOptions,
): Promise<ConsolePage> {
  const page = await openConsole(browser, url, options);
  closeAfterTest(() => page.close());
  closeAfterTest(() => page.assertNoFaults());
  return page;
}

/** Starts `servegym serve` for the test that runs. */
export async function serveForTest(
  args: readonly string[] = [],
  variables: Readonly<Record<string, string>> = {},
): Promise<ServeProcess> {
  const server = await startServeWith({ SERVEGYM_STORE: 'memory', ...variables }, ...args);
  closeAfterTest(() => server.stop('SIGKILL'));
  return server;
}

/** Starts a browser and `servegym serve`, for all tests of the file that calls it. */
export async function startBoth(...args: string[]): Promise<{ browser: Browser; server: ServeProcess }> {
  const [browser, server] = await Promise.allSettled([launchChromium(), startServe(...args)]);
  const end = async () => {
    if (browser.status === 'fulfilled') await browser.value.close();
    if (server.status === 'fulfilled') await server.value.stop('SIGKILL');
  };
  if (browser.status === 'fulfilled' && server.status === 'fulfilled') {
    after(end);
    return { browser: browser.value, server: server.value };
  }
  await end();
  throw browser.status === 'rejected' ? browser.reason : (server as PromiseRejectedResult).reason;
}

/** A request that passed through to the server. */
interface PassedRequest {
  readonly method: string;
  /** Without the prefix. */
  readonly path: string;
  readonly body: string;
}

/** `pass` hands requests on, `cut` breaks their connections, `refuse` answers them with an error of the server's kind. */
type ProxyMode = 'pass' | 'cut' | { readonly refuse: number; readonly detail: string };

/** A reverse proxy that serves another server under a path prefix and can fail on command. */
export interface ReverseProxy {
  /** `http://127.0.0.1:<port><prefix>`, without a slash at the end. */
  readonly url: string;
  readonly passed: readonly PassedRequest[];
  /** Requests that did not start with the prefix. */
  readonly strays: readonly string[];
  mode: ProxyMode;
  close(): void;
}

export async function startReverseProxy(target: string, prefix = ''): Promise<ReverseProxy> {
  const passed: PassedRequest[] = [];
  const strays: string[] = [];
  const server = createServer(async (incoming: IncomingMessage, response: ServerResponse) => {
    const { mode } = proxy;
    if (mode === 'cut') {
      incoming.socket.destroy();
      return;
    }
    if (mode !== 'pass') {
      response
        .writeHead(mode.refuse, { 'content-type': 'application/json' })
        .end(JSON.stringify({ detail: mode.detail }));
      return;
    }
    const { url = '/', method = 'GET', headers } = incoming;
    if (!url.startsWith(`${prefix}/`)) {
      strays.push(url);
      response.writeHead(404).end();
      return;
    }
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const path = url.slice(prefix.length);
    passed.push({ method, path, body: body.toString() });
    const outgoing = request(new URL(path, target), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    outgoing.on('error', () => incoming.socket.destroy());
    outgoing.end(body);
  });
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  const proxy: ReverseProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${prefix}`,
    passed,
    strays,
    mode: 'pass',
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
  return proxy;
}
