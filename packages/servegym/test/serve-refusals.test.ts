import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { LlmClient } from '@servegym/agents';
import { runServegym } from '../../../maintenance/test-servers/servegym.ts';
import { startServer } from '../src/server/start-server.ts';
import { runCommand } from './in-process.ts';

describe('servegym serve, when it cannot listen', () => {
  it('says that the port is taken and how to choose another', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const { code, stderr } = await runServegym('serve', '--host', '127.0.0.1', '--port', String(port));
    other.close();
    assert.equal(code, 2);
    assert.match(stderr, new RegExp(`^error: Port ${port} is taken.*--port`));
    assert.doesNotMatch(stderr, /\n\s+at /, 'no stack trace');
  });

  it('refuses an address that this machine does not have', async () => {
    const { code, stderr } = await runCommand('serve', '--host', '192.0.2.1', '--port', '0');
    assert.equal(code, 2);
    assert.match(stderr, /`192\.0\.2\.1` is no address of this machine.*--host/);
  });

  it('refuses environments that are none, or twice the same', async () => {
    for (const [names, message] of [
      ['llmserve,llmserve', /whose names are different.*`llmserve` twice/s],
      ['llmserve,benchmark,benchmark', /whose names are different.*twice/s],
      ['llmserve,,benchmark', /names of environments with commas/],
      ['llmserve,nobody', /one of llmserve, fleet, inferencegym, benchmark, or a module.*`nobody`/s],
    ] as const) {
      const { code, stderr } = await runCommand('serve', '--port', '0', '--env', names);
      assert.equal(code, 2, stderr);
      assert.match(stderr, message);
    }
  });

  it('refuses a port that is no port', async () => {
    for (const port of ['http', '-1', '70000', '80.5', '']) {
      const { code, stderr } = await runCommand('serve', '--port', port);
      assert.equal(code, 2, port);
      assert.match(stderr, /Expected a whole number from 0 to 65535/, port);
    }
  });
});

describe('servegym serve, when a file or a value will not do', () => {
  it('says why sessions cannot be kept there, and what to do', async () => {
    const { code, stderr } = await runCommand('serve', '--port', '0', '--store', import.meta.filename);
    assert.equal(code, 2);
    assert.match(
      stderr,
      /^error: Sessions cannot be kept in `.*serve-refusals\.test\.ts`: file is not a database\./,
    );
    assert.match(stderr, /--store or SERVEGYM_STORE; `--store memory`/);
  });

  it('names the value and what was expected', async () => {
    for (const [option, value, expected] of [
      ['--store', '', /a file, redis:.* or `memory`/],
      ['--cors', 'https://example.com/', /without a path or a slash/],
      ['--rate-limit', 'often', /a whole number or `seed`/],
      ['--rate-limit', '0', /a whole number from 1/],
      ['--session-timeout', '0', /a number above 0/],
      ['--drain-timeout', '-1', /a whole number from 0/],
      ['--mode', 'both', /simulation, production/],
      ['--log', 'xml', /pretty, json, silent/],
      ['--log-level', 'debug', /error, warn, info/],
    ] as const) {
      const { code, stderr } = await runCommand('serve', '--port', '0', `${option}=${value}`);
      assert.equal(code, 2, option);
      assert.match(stderr, expected, option);
    }
  });
});

/** A server that counts who comes. */
async function startCanary(t: TestContext) {
  const visits: string[] = [];
  const canary = createHttpServer((request, response) => {
    visits.push(`${request.method} ${request.url}`);
    response.end('{}');
  });
  canary.listen(0, '127.0.0.1');
  await once(canary, 'listening');
  t.after(() => void canary.close());
  return { visits, url: `http://127.0.0.1:${(canary.address() as AddressInfo).port}/secret` };
}

interface Operation {
  readonly requestBody?: {
    readonly content: Record<string, { readonly schema: { readonly properties?: Record<string, object> } }>;
  };
}

describe('addresses inside the network of a server', () => {
  it('are asked for nobody: no field, path, query or header of a request is an address', async (t) => {
    const { visits, url } = await startCanary(t);
    const server = await startServer({ environments: ['llmserve'], outside: { calls: 1000 } });
    t.after(() => server.close());
    let sent = 0;
    const { paths } = await (await fetch(`${server.url}/openapi.json`)).json();
    for (const [path, methods] of Object.entries<Record<string, Operation>>(paths)) {
      for (const [method, { requestBody }] of Object.entries(methods)) {
        const named = path.replaceAll(/\{\w+\}/g, encodeURIComponent(url));
        const { properties = {} } = requestBody?.content['application/json']?.schema ?? {};
        const names = [
          ...new Set([...Object.keys(properties), 'url', 'trace', 'traffic', 'task_id', 'table']),
        ];
        const bodies =
          method === 'get' ? [undefined] : [...names.map((name) => ({ [name]: url })), [url], url];
        for (const body of bodies) {
          const query = new URLSearchParams(names.map((name) => [name, url]));
          const answer = await fetch(`${server.url}${named}${method === 'get' ? `?${query}` : ''}`, {
            method: method.toUpperCase(),
            headers: { 'content-type': 'application/json', referer: url, 'x-forwarded-host': url },
            body: body === undefined ? undefined : JSON.stringify(body),
          });
          await answer.body?.cancel();
          sent++;
        }
      }
    }
    assert.ok(sent > 100, `${sent} requests`);
    assert.deepEqual(visits, []);
  });

  it('are not reached through a model that sends the server there', async (t) => {
    const { visits, url } = await startCanary(t);
    const model = createHttpServer((_, response) => response.writeHead(307, { location: url }).end());
    model.listen(0, '127.0.0.1');
    await once(model, 'listening');
    t.after(() => void model.close());
    const baseUrl = `http://127.0.0.1:${(model.address() as AddressInfo).port}/v1`;
    const client = new LlmClient({ baseUrl, apiKey: 'k', model: 'm', retries: 0 });
    await assert.rejects(client.ask([{ role: 'user', content: 'go' }], {}), {
      code: 'LLM_UNREACHABLE',
      message: /307/,
    });
    assert.deepEqual(visits, []);
  });
});
