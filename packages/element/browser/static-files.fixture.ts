import assert from 'node:assert/strict';
import { createReadStream, existsSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import type { Browser } from 'playwright-core';

/** The built package. */
export const DIST = join(import.meta.dirname, '..', 'dist');
const BASE = '/some/where/';
const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.html': 'text/html',
};
/** Serves the built files under a path, beside pages with the given bodies, and nothing else. */
export async function serveFiles(bodies: Readonly<Record<string, string>>) {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url!, 'http://files');
    const name = pathname.startsWith(BASE) ? decodeURI(pathname.slice(BASE.length)) : '';
    const file = join(DIST, name);
    const body = bodies[name];
    response.setHeader('access-control-allow-origin', '*');
    response.setHeader('content-type', TYPES[extname(name)] ?? 'text/plain');
    if (body !== undefined)
      response.end(
        `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>A page</title><link rel="icon" href="data:,"><main><h1>A page</h1>${body}</main>`,
      );
    else if (name !== '' && existsSync(file) && statSync(file).isFile())
      createReadStream(file).pipe(response);
    else response.writeHead(404).end();
  });
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  const { port } = server.address() as AddressInfo;
  return { server, url: `http://127.0.0.1:${port}${BASE}`, other: `http://localhost:${port}${BASE}` };
}

/** A page that has to end without faults, and what it asked for. */
export async function openPage(browser: Browser, url: string, longestWaitMs: number, options = {}) {
  const page = await browser.newPage(options);
  page.setDefaultTimeout(longestWaitMs);
  const faults: string[] = [];
  const asked: string[] = [];
  page.on('pageerror', ({ message }) => faults.push(message));
  page.on('console', (message) => message.type() === 'error' && faults.push(message.text()));
  page.on('request', (request) => asked.push(request.url()));
  await page.goto(url);
  return {
    page,
    asked,
    async [Symbol.asyncDispose]() {
      await page.close();
      assert.deepEqual(faults, []);
    },
  };
}
