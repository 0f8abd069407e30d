import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { type EndpointOptions, startEndpoint } from '@servegym/endpoint';
import { findProfile } from '@servegym/profiles';
import { startServegym } from '../../../maintenance/test-servers/servegym.ts';
import { temporaryFolder } from '../../../maintenance/test-servers/temporary-folder.ts';
import { runCommand } from './in-process.ts';

const HOST = '127.0.0.1';
const ENDPOINT: EndpointOptions = {
  profile: findProfile('a100-40gb-llama-3-8b'),
  config: {
    ...{ maxNumSeqs: 16, kvBudgetFraction: 1, speculationDepth: 0, weights: 'FP16' },
    ...{ split: false, schedulingPolicy: 'fcfs' },
  },
  ...{ engines: 1, maxNumBatchedTokens: 512, acceptance: 'sharegpt', prefixCaching: true, maxModelLen: 512 },
  ...{ timeScale: 20, apiKeys: [], seed: 0, port: 0, host: HOST },
};
/** Completions of the handshake and of the first load, which are single requests. */
const FIRST_LOAD = 1 + 8;
/** Relative spread of a coefficient that is called determined. */
const DETERMINED = 0.075;
const LIMITS = ['--deployment', '--max-num-seqs 16 --max-num-batched-tokens 512'];

describe('servegym profile make of a running server', () => {
  const folder = temporaryFolder();
  const newOutput = () => join(mkdtempSync(join(folder, 'run-')), 'mine.json');

  /** An endpoint of this process, behind which `onRequest` hears of each completion that is asked for. */
  async function serve(t: TestContext, options: Partial<EndpointOptions> = {}) {
    let completions = 0;
    let heard = () => {};
    const endpoint = await startEndpoint({
      ...ENDPOINT,
      refuse: (_, path) => {
        if (path.endsWith('/completions')) {
          completions += 1;
          heard();
        }
        return null;
      },
      ...options,
    });
    t.after(() => endpoint.close());
    return {
      endpoint,
      profile: { ...ENDPOINT, ...options }.profile,
      api: `${endpoint.url}/v1`,
      get completions() {
        return completions;
      },
      /** Waits until the child has asked for more completions than `count`. */
      async waitBehind(count: number, child: ReturnType<typeof startServegym>) {
        const asked = new Promise<void>((resolve) => {
          heard = () => completions > count && resolve();
        });
        const ending = await Promise.race([asked, child.ended]);
        if (ending) throw new Error(`It ended too early:\n${ending.stderr}`);
      },
    };
  }

  /** A server of one's own, with a list of models. */
  async function fake(t: TestContext, complete: RequestListener): Promise<string> {
    const server = createServer((request, response) => {
      if (request.url === '/v1/models') response.end(JSON.stringify({ data: [{ id: 'fake' }] }));
      else if (request.method === 'POST') complete(request, response);
      else response.writeHead(404).end();
    });
    server.listen(0, HOST);
    await once(server, 'listening');
    t.after(() => {
      server.close();
      server.closeAllConnections();
    });
    return `http://${HOST}:${(server.address() as AddressInfo).port}/v1`;
  }

  it('keeps what was measured before Ctrl-C, and does not send it again with --resume', async (t) => {
    const server = await serve(t, { timeScale: 2 });
    const output = newOutput();
    const calibrate = ['profile', 'make', server.api, ...LIMITS, '--yes', '--output', output];
    const child = startServegym(...calibrate);
    await server.waitBehind(FIRST_LOAD, child);
    child.signal('SIGINT');
    const { code, stderr } = await child.ended;
    assert.equal(code, 130, stderr);
    const loadsFile = output.replace('.json', '.loads.json');
    assert.ok(stderr.includes(`1 load is kept in ${loadsFile}: add --resume to go on`), stderr);
    assert.equal(existsSync(output), false);
    const [first] = JSON.parse(readFileSync(loadsFile, 'utf8'));
    const before = server.completions;
    const again = startServegym(...calibrate, '--resume');
    // The handshake, and the second load.
    await server.waitBehind(before + 1 + 8, again);
    again.signal('SIGINT');
    await again.ended;
    const loads: { source: string }[] = JSON.parse(readFileSync(loadsFile, 'utf8'));
    assert.deepEqual(loads[0], first);
    assert.equal(new Set(loads.map(({ source }) => source)).size, loads.length);
    assert.ok(loads.length >= 2);
  });

  it('sends nothing but one short request where nobody can be asked and --yes is missing', async (t) => {
    const server = await serve(t);
    const output = newOutput();
    const { code, stdout, stderr } = await runCommand(
      ...['profile', 'make', server.api, ...LIMITS, '--output', output, '--minutes', '3'],
      ...['--most-tokens', '250000', '--usd-per-million-tokens', '2'],
    );
    assert.equal(code, 2, stderr);
    assert.equal(stdout, '');
    assert.match(stderr, /about 3 minutes: at most 250,000 tokens.* at most 0\.50 USD/);
    assert.match(stderr, /error: .*add --yes to allow the load/);
    assert.equal(server.completions, 1);
    assert.equal(existsSync(output), false);
  });

  it('makes a profile of a server that it does not know, with no more tokens than it said', async (t) => {
    const timeScale = 2;
    const server = await serve(t, { timeScale });
    const output = newOutput();
    const calibrate = ['profile', 'make', server.api, ...LIMITS, '--yes', '--output', output, '--json'];
    const few = await runCommand(...calibrate, '--most-tokens', '500');
    assert.equal(few.code, 2);
    assert.match(few.stderr, /expected --most-tokens to be at least [\d,]+ .*got 500/);
    assert.equal(server.completions, 1);
    const { code, stdout, stderr } = await runCommand(
      ...calibrate,
      '--most-tokens',
      '3000',
      '--minutes',
      '2',
    );
    assert.equal(code, 0, stderr);
    const { relative_spread: spread, untold_settings: settings } = JSON.parse(stdout);
    const real = server.profile.weights.FP16!.law;
    const { law } = JSON.parse(readFileSync(output, 'utf8')).weights.FP16;
    const near = (fitted: number, truth: number, what: string) =>
      assert.ok(
        Math.abs((timeScale * fitted) / truth - 1) < 0.1,
        `${what}: ${timeScale * fitted} for ${truth}`,
      );
    near(law.baseUs + law.weightReadUs, real.baseUs + real.weightReadUs, 'idle iteration');
    for (const [name, truth] of Object.entries(real)) {
      if (spread[name] < DETERMINED) near(law[name], truth, name);
    }
    assert.match(settings.join(), /^Scheduling: /);
    assert.match(stderr, /at most 3,000 tokens/);
    const metrics = await (await fetch(`${server.endpoint.url}/metrics`)).text();
    const total = (name: string) => Number(new RegExp(`^${name}\\{.*\\} (\\d+)`, 'm').exec(metrics)![1]);
    const tokens = total('vllm:prompt_tokens_total') + total('vllm:generation_tokens_total');
    // The handshakes of both runs are not of the loads.
    assert.ok(tokens > 1500 && tokens <= 3000 + 2 * 12, `${tokens}`);
  });

  it('says that the server died, and keeps what was measured', async (t) => {
    const server = await serve(t, { timeScale: 2 });
    const output = newOutput();
    const child = startServegym('profile', 'make', server.api, ...LIMITS, '--yes', '--output', output);
    await server.waitBehind(FIRST_LOAD, child);
    await server.endpoint.close();
    const { code, stderr } = await child.ended;
    assert.equal(code, 2, stderr);
    assert.match(stderr, /\d of 8 requests of the load 8 at once failed, the first: /);
    assert.match(stderr, /1 load is kept in .*loads\.json: add --resume to go on/);
    const loads = JSON.parse(readFileSync(output.replace('.json', '.loads.json'), 'utf8'));
    assert.deepEqual(
      loads.map(({ source }: { source: string }) => source),
      ['single requests'],
    );
  });

  it('refuses a server that does not stream', async (t) => {
    const api = await fake(t, (_, response) => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ choices: [{ text: 'all at once' }], usage: { completion_tokens: 3 } }));
    });
    const { code, stderr } = await runCommand(...['profile', 'make'], api, '--yes', '--output', newOutput());
    assert.equal(code, 2, stderr);
    assert.match(stderr, /completions streamed no token/);
  });

  it('sends the key of --api-key, and says what lacks without it', async (t) => {
    const server = await serve(t, { apiKeys: ['sesame'] });
    const calibrate = ['profile', 'make', server.api, ...LIMITS, '--output', newOutput()];
    const without = await runCommand(...calibrate, '--yes');
    assert.equal(without.code, 2);
    assert.match(without.stderr, /models answered 401: .*--api-key/);
    const withKey = await runCommand(...calibrate, '--api-key', 'sesame');
    assert.match(withKey.stderr, /add --yes to allow the load/);
    assert.doesNotMatch(withKey.stderr, /sesame/);
  });
});

describe('servegym profile confirm', () => {
  it('prints the loads that were compared before Ctrl-C', async (t) => {
    const endpoint = await startEndpoint({ ...ENDPOINT, timeScale: 1 });
    t.after(() => endpoint.close());
    const child = startServegym(
      ...['profile', 'confirm', `${endpoint.url}/v1`, '--profile', 'a100-40gb-llama-3-8b', '--seconds', '1'],
      ...LIMITS,
    );
    await child.noted(/load 2 of 5: /);
    child.signal('SIGINT');
    const { code, stdout, stderr } = await child.ended;
    assert.equal(code, 130, stderr);
    assert.match(stderr, /error: interrupted\n$/);
    const rows = stdout.trimEnd().split('\n');
    assert.match(rows[0]!, /^load +requests +figure +measured, ms/);
    assert.deepEqual(
      rows.slice(1).map((row) => /(?:TTFT|TPOT|E2E) (?:mean|p99)/.exec(row)?.[0]),
      ['TTFT mean', 'TTFT p99', 'TPOT mean', 'E2E mean', 'E2E p99'],
    );
  });
});
