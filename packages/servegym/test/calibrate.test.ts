import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, join } from 'node:path';
import { before, describe, it, type TestContext } from 'node:test';
import { type EndpointOptions, startEndpoint } from '@servegym/endpoint';
import { findGpu, findProfile, listProfiles, parseEngineProfile } from '@servegym/profiles';
import type { EngineProfile } from '@servegym/simulator';
import { staticBatchCsv, WHOLLY_TABLED } from '../../../benchmarks/fidelity/measured-figures.fixture.ts';
import { runServegym, startServegym } from '../../../maintenance/test-servers/servegym.ts';
import { temporaryFolder } from '../../../maintenance/test-servers/temporary-folder.ts';
import { writeTables } from '../../profiles/src/tables/operator-rows.fixture.ts';
import { makeCommand } from '../src/cli/profile/make.ts';
import { runCommand } from './in-process.ts';

const header = 'gpu,gpus,engine,model,weights,kv_cache,input_tokens,output_tokens,batch,latency_s';

describe('servegym profile make', () => {
  const folder = temporaryFolder();
  let measured: string;
  before(() => {
    measured = join(folder, 'static-batch-latency.csv');
    writeFileSync(measured, staticBatchCsv());
  });

  it('makes shipped profiles again by the commands that they name', async () => {
    for (const name of WHOLLY_TABLED) {
      const { fit, gpu, ...shipped } = findProfile(name);
      const words = [...fit!.command.matchAll(/"([^"]*)"|(\S+)/g)].map(
        ([, quoted, plain]) => quoted ?? plain,
      );
      const args = words.slice(1).map((word) => (word === basename(measured) ? measured : word));
      const { code, stdout, stderr } = await runCommand(...args, '--json');
      assert.equal(code, 0, stderr);
      const { profile } = JSON.parse(stdout);
      // Rewards count with the price of when a profile was first made.
      assert.deepEqual(
        { ...profile, gpu: { ...profile.gpu, usdPerHour: gpu.usdPerHour } },
        { ...shipped, fit, gpu },
      );
    }
  });

  it('prints coefficients, errors on rows left out, and what the rows cannot say', async () => {
    const { code, stdout } = await runCommand(
      ...['profile', 'make'],
      measured,
      '--gpu',
      'A100',
      '--model',
      'llama-3-8b',
    );
    assert.equal(code, 0);
    assert.match(stdout, /perContextTokenNs +\d+/);
    assert.match(stdout, /left out {2}\d\.\d+ % mean/);
    assert.match(stdout, /hardly determine .*perTokenUs/);
    assert.match(stdout, /64 x \(2048 \+ 2048\) does not fit at once: measured 125\.74 s/);
  });

  it('fits a profile to loads that a load generator measured', async () => {
    const files = await Promise.all(
      // Three loads: a single one that is left does not tell the coefficients apart.
      [1, 3, 6].map(async (rate) => {
        const file = join(folder, `rate-${rate}.jsonl`);
        const trace = join(folder, `trace-${rate}.jsonl`);
        const lines = Array.from({ length: 150 }, (_, i) =>
          JSON.stringify({
            timestamp: Math.round((1000 * i + 300 * (i % 3)) / rate),
            input_length: 50 + 211 * (i % 11),
            output_length: 20 + 37 * (i % 7),
          }),
        );
        writeFileSync(trace, lines.join('\n'));
        const served = await runCommand(
          ...['simulate', trace, '--profile', 'a100-40gb-llama-3-8b', '--requests-file', file],
        );
        assert.equal(served.code, 0, served.stderr);
        return file;
      }),
    );
    const output = join(folder, 'bench.json');
    const hardware = ['--gpu', 'a100-40gb', '--model', 'llama-3-8b'];
    const { code, stdout, stderr } = await runCommand(
      ...['profile', 'make', ...files, ...hardware, '--output', output],
    );
    assert.equal(code, 0, stderr);
    assert.match(stdout, /450 requests fitted/);
    assert.match(stdout, /requestOverheadMs +\d/);
    assert.match(stdout, /rate-6\.jsonl +150 /);
    const profile = JSON.parse(readFileSync(output, 'utf8'));
    assert.ok(profile.fit.heldOutMeanErrorPercent < 4, stdout);
    assert.match(
      profile.fit.command,
      /profile make rate-1\.jsonl rate-3\.jsonl rate-6\.jsonl --gpu a100-40gb --model llama-3-8b$/,
    );

    const again = await runCommand('profile', 'make', files[0], '--start', output, '--json');
    assert.equal(again.code, 0, again.stderr);
    const { gaps, folds } = JSON.parse(again.stdout);
    assert.equal(folds.length, 4);
    assert.match(gaps.join(), /requests at once hardly varies/);
  });

  it('says what a result of a load generator lacks', async () => {
    const file = join(folder, 'summary.json');
    writeFileSync(file, JSON.stringify({ mean_ttft_ms: 4, completed: 3, total_input_tokens: 9 }));
    const cases: readonly [args: string[], message: RegExp][] = [
      [[file, '--gpu', 'A100', '--model', 'llama-3-8b'], /--save-detailed/],
      [[file], /--gpu is missing/],
      [[file, '--start', 'a100-40gb-llama-3-8b', '--gpu', 'A100'], /leave out --gpu and --model/],
      [[join(folder, 'none.json'), '--gpu', 'A100', '--model', 'llama-3-8b'], /no such file/],
    ];
    for (const [args, message] of cases) {
      const { code, stderr } = await runCommand('profile', 'make', ...args);
      assert.equal(code, 2, stderr);
      assert.match(stderr, message);
    }
  });

  it('estimates a profile from data sheets', async () => {
    const output = join(folder, 'estimate.json');
    const args = ['--gpu', 'h200-141gb', '--model', 'llama-3-70b', '--deployment', '-tp 2'];
    const { code, stdout } = await runCommand('profile', 'make', ...args, '--output', output);
    assert.equal(code, 0);
    assert.match(stdout, /status +estimated/);
    const shipped = findProfile('h200-141gb-llama-3-70b-tp2');
    assert.deepEqual(JSON.parse(readFileSync(output, 'utf8')), {
      ...shipped,
      gpu: { ...shipped.gpu, usdPerHour: findGpu('h200-141gb').usdPerHour },
    });
  });

  it('estimates vLLM of the version that it is told', async () => {
    const of = async (...version: string[]) => {
      const output = join(folder, `estimate-${version.join('')}.json`);
      const args = ['--gpu', 'h100-80gb', '--model', 'llama-3-8b', ...version];
      assert.equal((await runCommand('profile', 'make', ...args, '--output', output)).code, 0);
      const { engine, weights } = JSON.parse(readFileSync(output, 'utf8')) as EngineProfile;
      return { engine, idleUs: weights.FP16!.law.baseUs + weights.FP16!.law.weightReadUs };
    };
    const [newest, old, before] = await Promise.all([
      of(),
      of('--engine-version', '0.10.2'),
      of('--engine-version', '0.6'),
    ]);
    assert.equal(newest.engine.asyncScheduling, true);
    assert.deepEqual(old.engine, { name: 'vLLM', version: '0.10.2' });
    assert.ok(old.idleUs > newest.idleUs, `${old.idleUs} us`);
    assert.equal(before.engine.version, '0.6');
    assert.ok(before.idleUs > newest.idleUs, `${before.idleUs} us`);
  });

  it('estimates a profile of a GPU and a model that files describe', async () => {
    const gpu = join(folder, 'mine.json');
    writeFileSync(gpu, '{"name": "Mine-100GB", "memoryGiB": 99, "memoryGBps": 3000, "bf16Tflops": 900}');
    const model = join(folder, 'My-Llama-1B', 'config.json');
    mkdirSync(join(folder, 'My-Llama-1B'));
    writeFileSync(
      model,
      JSON.stringify({
        ...{ model_type: 'llama', hidden_size: 2048, intermediate_size: 8192, vocab_size: 128_256 },
        ...{ num_hidden_layers: 16, num_attention_heads: 32, num_key_value_heads: 8 },
        ...{ tie_word_embeddings: true, max_position_embeddings: 131_072 },
      }),
    );
    const output = join(folder, 'mine-profile.json');
    const { code, stderr } = await runCommand(
      ...['profile', 'make', '--gpu', gpu, '--model', model, '--output', output],
    );
    assert.equal(code, 0, stderr);
    const { name, weights } = JSON.parse(readFileSync(output, 'utf8'));
    assert.equal(name, 'mine-100gb-my-llama-1b');
    assert.ok(Math.abs(weights.FP16.weightGiB - 2.3) < 0.05, weights.FP16.weightGiB);
    writeFileSync(
      model,
      JSON.stringify({
        ...{ model_type: 'mamba2', hidden_size: 4096, num_hidden_layers: 64, vocab_size: 32_768 },
        ...{ state_size: 128, conv_kernel: 4 },
      }),
    );
    const unsupported = await runCommand('profile', 'make', '--gpu', gpu, '--model', model);
    assert.equal(unsupported.code, 2);
    assert.match(
      unsupported.stderr,
      /config\.json: expected a model whose layers are known .* got `model_type` "mamba2" with `state_size`, `conv_kernel`/,
    );
  });

  it('composes a profile from kernel tables, of a model read from its config.json', async () => {
    const tables = mkdtempSync(join(folder, 'tables-'));
    writeTables(tables, 'h100_sxm', [['vllm', '0.24.0']]);
    const config = join(tables, 'toy.json');
    const sizes = { hidden_size: 1024, intermediate_size: 2048, num_hidden_layers: 4, vocab_size: 4096 };
    const heads = { num_attention_heads: 8, num_key_value_heads: 8, max_position_embeddings: 8192 };
    writeFileSync(config, JSON.stringify({ model_type: 'llama', ...sizes, ...heads }));
    const output = join(tables, 'profile.json');
    const made = (flags: string, engine: string) => [
      ...[tables, '--gpu', 'h100', '--model', config, '--deployment', flags, '--engine', engine],
    ];
    const args = made('-tp 2', 'vllm-0.24');
    const { code, stdout, stderr } = await runCommand('profile', 'make', ...args, '--output', output);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^tables: gemm 0\.24\.0, /m);
    assert.match(stdout, /^FP16 +decode, up to 32 +\d+ +\d\.\d % +\d\.\d %$/m);
    const profile = parseEngineProfile(readFileSync(output, 'utf8'), output);
    assert.equal(profile.name, 'h100-80gb-toy-tp2');
    assert.match(
      profile.fit!.command,
      /--gpu h100-80gb --model toy\.json --deployment "-tp 2" --engine vllm-0\.24$/,
    );
    const json = await runCommand(
      ...['profile', 'make', ...made('-tp 2 --quantization fp8', 'vllm-0.24'), '--json'],
    );
    assert.deepEqual(Object.keys(JSON.parse(json.stdout).profile.weights), ['FP8']);
    const before = await runCommand('profile', 'make', ...made('-tp 2', 'vllm-0.5'), '--json');
    const { engine, weights } = JSON.parse(before.stdout).profile;
    assert.deepEqual(engine, { name: 'vLLM', version: '0.5' });
    assert.ok(weights.FP16.law.baseUs > profile.weights.FP16!.law.baseUs + 1000);
    assert.ok(weights.FP16.law.perContextTokenNs > 1.3 * profile.weights.FP16!.law.perContextTokenNs);
  });

  const misuse: readonly [what: string, args: readonly string[], message: RegExp][] = [
    [
      'nothing to make one from',
      ['--kind', 'bench', '--gpu', 'A100', '--model', 'llama-3-8b'],
      /--kind bench: expected a source/,
    ],
    ['an unknown GPU', ['--gpu', 'z100', '--model', 'llama-3-8b'], /a known GPU \(a100-40gb, /],
    [
      'a version that is none',
      ['--gpu', 'A100', '--model', 'llama-3-8b', '--engine-version', 'new'],
      /Expected a version of vLLM/,
    ],
    ['an unknown model', ['--gpu', 'A100', '--model', 'gpt'], /a known model \(llama-3-8b, /],
    [
      'a folder without tables',
      ['none', '--kind', 'tables', '--gpu', 'A100', '--model', 'llama-3-8b'],
      /none: expected the unpacked package aiconfigurator-core/,
    ],
    [
      'two folders',
      ['none', 'more', '--kind', 'tables', '--gpu', 'H100', '--model', 'llama-3-8b'],
      /expected one source, got none, more/,
    ],
    [
      'a version of measurements that have one',
      ['any.csv', '--gpu', 'A100', '--model', 'llama-3-8b', '--engine-version', '0.6'],
      /--engine-version cannot be used with sources of the kind static-batch/,
    ],
    [
      'an estimate with measurements',
      ['any.csv', '--kind', 'estimate', '--gpu', 'A100', '--model', 'llama-3-8b'],
      /an estimate has no sources/,
    ],
  ];
  for (const [what, args, message] of misuse) {
    it(`refuses ${what}`, async () => {
      const { code, stderr } = await runCommand('profile', 'make', ...args);
      assert.equal(code, 2);
      assert.match(stderr, message);
    });
  }

  const refused: readonly [what: string, text: string, message: RegExp][] = [
    ['an empty file', '', /expected at least one measurement/],
    ['other columns', 'a,b\n1,2\n', /bad\.csv:1: expected the columns gpu, gpus/],
    [
      'a latency of zero',
      `${header}\nA100,1,vLLM,llama-3-8b,fp16,fp16,1,1,1,0\n`,
      /bad\.csv:2: expected latency_s .* got "0"/,
    ],
    [
      'a negative batch',
      `${header}\nA100,1,vLLM,llama-3-8b,fp16,fp16,1,1,-1,2\n`,
      /bad\.csv:2: expected batch/,
    ],
    ['too few fields', `${header}\nA100,1\n`, /bad\.csv:2: expected 10 fields/],
    [
      'too few rows',
      `${header}\nA100,1,vLLM,llama-3-8b,fp16,fp16,128,128,1,2\n`,
      /expected at least 4 rows .* got 1/,
    ],
  ];
  for (const [what, text, message] of refused) {
    it(`refuses ${what}`, async () => {
      const path = join(folder, 'bad.csv');
      writeFileSync(path, text);
      const { code, stderr } = await runCommand(
        ...['profile', 'make'],
        path,
        '--gpu',
        'A100',
        '--model',
        'llama-3-8b',
      );
      assert.equal(code, 2);
      assert.match(stderr, message);
    });
  }
});

describe('servegym profile list and show', () => {
  it('lists every profile with its errors', async () => {
    const { code, stdout } = await runCommand('profile', 'list');
    assert.equal(code, 0);
    for (const { name } of listProfiles()) assert.ok(stdout.includes(name), name);
    assert.match(stdout, /left out/);
  });

  it('lists them in JSON', async () => {
    const { stdout } = await runCommand('profile', 'list', '--json');
    assert.deepEqual(JSON.parse(stdout), listProfiles());
  });

  it('lists those of a GPU, a model and a status', async () => {
    const { stdout } = await runCommand('profile', 'list', '--gpu', 'h200', '--model', 'Qwen3', '--json');
    const shown: { gpu: { name: string }; model: { name: string } }[] = JSON.parse(stdout);
    assert.ok(shown.length > 4);
    for (const { gpu, model } of shown) assert.match(`${gpu.name} ${model.name}`, /^H200-141GB Qwen3[-.]/);
    // The price of `plan`, and beside it that of rewards.
    const sheet = await runCommand('profile', 'show', 'h100-80gb-llama-3-8b');
    assert.match(sheet.stdout, /^GPU .* 3\.99 USD\/h each\nprice .*RunPod.*\nin rewards +3 USD\/h each/m);
    const pro = await runCommand('profile', 'list', '--gpu', 'rtx pro', '--status', 'tables');
    assert.match(pro.stdout, /^rtx-pro-6000-96gb-qwen3-8b +tables +FP16 /m);
    for (const [asked, name] of [
      ['l4', 'L4-24GB'],
      ['rtx 4090', 'RTX4090-24GB'],
    ]) {
      const one = await runCommand('profile', 'list', '--gpu', asked, '--json');
      const listed: typeof shown = JSON.parse(one.stdout);
      assert.deepEqual([...new Set(listed.map(({ gpu }) => gpu.name))], [name]);
    }
    const none = await runCommand('profile', 'list', '--gpu', 'tpu');
    assert.match(none.stdout, /^No shipped profile is of these\./);
    const both = await runCommand('profile', 'list', 'a100-40gb-llama-3-8b', '--gpu', 'a100');
    assert.equal(both.code, 2);
  });

  it('names the command that makes an estimate again', async () => {
    const { stdout } = await runCommand('profile', 'show', 'mi300x-192gb-qwen3-32b-tp2');
    assert.match(
      stdout,
      /made by +servegym profile make --gpu mi300x-192gb --model qwen3-32b --deployment "-tp 2"$/m,
    );
  });

  it('data: the commands of shipped profiles are typed as they stand', () => {
    const flags = makeCommand().options.map(({ long }) => long);
    const commands = listProfiles().flatMap(({ fit }) => (fit ? [fit.command] : []));
    assert.ok(commands.length > 300);
    for (const command of commands) {
      assert.match(command, /^servegym profile make [^-]/);
      for (const [flag] of command.replaceAll(/"[^"]*"/g, '').matchAll(/--[a-z-]+/g))
        assert.ok(flags.includes(flag), command);
    }
  });

  it('shows one in full', async () => {
    const { code, stdout } = await runServegym('profile', 'show', 'a100-40gb-llama-3-8b');
    assert.equal(code, 0);
    assert.match(stdout, /made by +servegym profile make static-batch-latency\.csv --gpu a100-40gb /);
  });

  it('refuses a name that is none', async () => {
    const { code, stderr } = await runCommand('profile', 'show', 'a100');
    assert.equal(code, 2);
    assert.match(stderr, /the closest/);
  });
});

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

  for (const [what, signal, exitCode] of [
    ['Ctrl-C', 'SIGINT', 130],
    ['kill -9', 'SIGKILL', null],
  ] as const)
    it(`keeps what was measured before ${what}, and does not send it again with --resume`, async (t) => {
      const server = await serve(t, { timeScale: 2 });
      const output = newOutput();
      const calibrate = ['profile', 'make', server.api, ...LIMITS, '--yes', '--output', output];
      const child = startServegym(...calibrate);
      await server.waitBehind(FIRST_LOAD, child);
      child.signal(signal);
      const { code, stderr } = await child.ended;
      assert.equal(code, exitCode, stderr);
      const loadsFile = output.replace('.json', '.loads.json');
      const isTold = stderr.includes(`1 load kept in ${loadsFile}: add --resume to go on`);
      assert.equal(isTold, signal === 'SIGINT', stderr);
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

  it('takes for what the server does not tell the defaults of vLLM on its GPU', async (t) => {
    const server = await serve(t, { timeScale: 1 });
    const make = ['profile', 'make', server.api, '--model', 'qwen3-8b', '--output', newOutput()];
    for (const [gpu, sequences, tokens] of [
      ['h200-141gb', 1024, 8192],
      ['l40s-48gb', 256, 2048],
    ] as const) {
      const { stderr } = await runCommand(...make, '--gpu', gpu);
      assert.match(stderr, new RegExp(`${sequences} sequences, ${tokens} tokens an iteration`));
      assert.match(stderr, /--yes to allow the load/);
    }
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
    assert.match(stderr, /1 load kept in .*loads\.json: add --resume to go on/);
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
  it('says what it sends, and asks before it does, as `make` does', async (t) => {
    const endpoint = await startEndpoint({ ...ENDPOINT, timeScale: 1 });
    t.after(() => endpoint.close());
    const { code, stderr } = await runCommand(
      ...[
        'profile',
        'confirm',
        `${endpoint.url}/v1`,
        '2048:256@1/s,60s',
        '--profile',
        'a100-40gb-llama-3-8b',
      ],
      ...['--requests', '10', '--usd-per-million-tokens', '10', ...LIMITS],
    );
    assert.equal(code, 2);
    assert.match(stderr, /sends 10 requests in 1 load: 23,040 tokens, .* at most 0\.23 USD/);
    assert.match(stderr, /add --yes to allow the load \(code: NOT_ALLOWED\)/);
  });

  it('prints the loads that were compared before Ctrl-C', async (t) => {
    const endpoint = await startEndpoint({ ...ENDPOINT, timeScale: 1 });
    t.after(() => endpoint.close());
    const child = startServegym(
      ...[
        'profile',
        'confirm',
        `${endpoint.url}/v1`,
        '--profile',
        'a100-40gb-llama-3-8b',
        '--minutes',
        '0.1',
        '--yes',
      ],
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
