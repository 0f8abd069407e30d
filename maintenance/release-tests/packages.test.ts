import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { launchChromium } from '../test-servers/chromium.ts';
import { PACKED } from './packed-packages.fixture.ts';

const run = promisify(execFile);
const root = dirname(dirname(import.meta.dirname));
const MIB = 1024 * 1024;

/** Tools of a consumer, which are not part of what is measured. */
const TOOLS = [
  ...['node@22.18.0', 'typescript@5.9.3', '@types/node@22.19.1', 'publint@0.3.25'],
  '@arethetypeswrong/cli@0.18.5',
];

/** An installation of packed packages in a folder with nothing else. */
async function install(folder: string, packages: readonly string[]): Promise<string> {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"private": true, "type": "module"}\n');
  await run('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error', ...packages], { cwd: folder });
  return folder;
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

/** Disk use of what an installation brought, MiB, in blocks of 4 KiB as `du` counts. */
function installedMib(folder: string): number {
  const blocks = filesBelow(join(folder, 'node_modules')).map((path) =>
    Math.ceil(statSync(path).size / 4096),
  );
  return (blocks.reduce((sum, each) => sum + each, 0) * 4096) / MIB;
}

function installedPackages(folder: string): string[] {
  const lock = JSON.parse(readFileSync(join(folder, 'node_modules', '.package-lock.json'), 'utf8'));
  return Object.keys(lock.packages);
}

describe('the packed packages', () => {
  const folder = mkdtempSync(join(tmpdir(), 'servegym-packages-'));
  const paths = readdirSync(PACKED).map((name) => join(PACKED, name));
  let consumer = '';
  let tools = '';

  before(async () => {
    [consumer, tools] = await Promise.all([
      install(join(folder, 'consumer'), paths),
      install(join(folder, 'tools'), TOOLS),
    ]);
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const tarball = (name: string) => paths.find((path) => new RegExp(`/servegym-${name}-\\d`).test(path))!;

  it('bring JavaScript, declarations, README and LICENSE, and no test', async () => {
    assert.equal(paths.length, 11);
    for (const path of paths) {
      const { stdout } = await run('tar', ['-tzf', path]);
      for (const file of ['package/package.json', 'package/README.md', 'package/LICENSE'])
        assert.match(stdout, new RegExp(`^${file}$`, 'm'), path);
      assert.doesNotMatch(
        stdout,
        /\.test\.|\.fixture\.|\/fixtures\/|golden-|\.tsbuildinfo|[^d]\.tsx?$/m,
        path,
      );
    }
  });

  it('pass publint and arethetypeswrong', async () => {
    const bin = join(tools, 'node_modules', '.bin');
    const check = async (path: string) => {
      await run(join(bin, 'publint'), [path, '--strict']);
      // The console has no module.
      if (!/servegym-console-\d/.test(path)) await run(join(bin, 'attw'), [path, '--profile', 'esm-only']);
    };
    await Promise.all(paths.map(check));
  });

  it('are imported, with types that know actions and observations', async () => {
    cpSync(join(root, 'packages/openenv/examples/guess'), join(consumer, 'guess'), { recursive: true });
    const readme = readFileSync(join(root, 'README.md'), 'utf8');
    const snippet = /^```ts\n(.*?)^```$/ms.exec(readme)![1];
    writeFileSync(join(consumer, 'readme.ts'), snippet);
    writeFileSync(join(consumer, 'types.ts'), TYPES);
    const compilerOptions = {
      ...{ target: 'es2024', module: 'nodenext', strict: true, noEmit: true, skipLibCheck: false },
      ...{ allowImportingTsExtensions: true, types: ['node'] },
      typeRoots: [join(tools, 'node_modules', '@types')],
    };
    const files = ['readme.ts', 'types.ts', 'guess/environment.ts', 'guess/serve.ts'];
    writeFileSync(join(consumer, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }));
    await run(join(tools, 'node_modules', '.bin', 'tsc'), ['-p', consumer]).catch(({ stdout }) =>
      assert.fail(`tsc complains:\n${stdout}`),
    );
  });

  for (const version of ['22', '24']) {
    describe(`on Node ${version}`, () => {
      const node = () => (version === '22' ? join(tools, 'node_modules', '.bin', 'node') : process.execPath);
      const servegym = (...args: string[]) =>
        run(node(), [join(consumer, 'node_modules', 'servegym', 'lib', 'main.js'), ...args], {
          cwd: consumer,
        });

      before(() => {
        cpSync(join(root, 'packages/servegym/test/fixtures/trace.jsonl'), join(consumer, 'trace.jsonl'));
        writeFileSync(join(consumer, 'log.jsonl'), drawnTrace());
      });

      it('import', async () => {
        const { stdout } = await run(node(), ['--input-type=module', '-e', IMPORTS], { cwd: consumer });
        assert.match(stdout, new RegExp(`^v${version}\\.\\d+\\.\\d+ ok\n$`));
      });

      it('run the command line: help, simulate, tune, a shipped policy', async () => {
        assert.match((await servegym('--help')).stdout, /serve +serve environments over OpenEnv/);
        const profile = ['--profile', 'h100-80gb-llama-3-8b'];
        assert.match((await servegym('simulate', 'trace.jsonl', ...profile)).stdout, /TTFT, ms/);
        const slo = ['--slo', 'ttft_p99=1s,tpot_p99=50ms'];
        const tuned = await servegym('tune', 'log.jsonl', ...profile, ...slo, '--configurations', '64');
        assert.match(tuned.stdout, /vllm serve /);
        const played = await servegym('evaluate', 'ppo', '--task', 'static_workload', '--episodes', '1');
        assert.match(played.stdout, /static_workload/);
      });

      it('serve the environments, and the page in a browser', async () => {
        const main = join(consumer, 'node_modules', 'servegym', 'lib', 'main.js');
        const server = spawn(node(), [main, 'serve', '--port', '0', '--store', 'memory'], {
          cwd: consumer,
          stdio: ['ignore', 'pipe', 'inherit'],
        });
        try {
          const [line] = await once(server.stdout!, 'data');
          const url = /http:\/\/\S+?(?=\/web\/)/.exec(String(line))![0];
          assert.equal(
            ((await (await fetch(`${url}/health`)).json()) as { status: string }).status,
            'healthy',
          );
          const browser = await launchChromium();
          try {
            const page = await browser.newPage();
            await page.goto(`${url}/`);
            await page
              .getByRole('button', { name: /^(Play|Pause)/ })
              .first()
              .waitFor({ timeout: 90_000 });
          } finally {
            await browser.close();
          }
        } finally {
          server.kill('SIGTERM');
          await once(server, 'exit');
        }
      });
    });
  }

  it('install little: 60 MiB and 120 packages for servegym, 25 MiB for openenv, 5 MiB for the simulator', async () => {
    assert.ok(installedPackages(consumer).length <= 120, `${installedPackages(consumer).length} packages`);
    const openenv = await install(join(folder, 'openenv'), [tarball('openenv')]);
    const simulator = await install(join(folder, 'simulator'), [tarball('simulator')]);
    for (const [installed, most] of [
      [consumer, 60],
      [openenv, 25],
      [simulator, 5],
    ] as const)
      assert.ok(installedMib(installed) <= most, `${installed}: ${installedMib(installed).toFixed(1)} MiB`);
    const native = filesBelow(simulator).filter((path) => /\.(node|so|dylib|dll)$/.test(path));
    assert.deepEqual(native, []);
  });
});

/** Imports every module that a package exports. */
const IMPORTS = `
import * as agents from '@servegym/agents';
import * as endpoint from '@servegym/endpoint';
import * as environments from '@servegym/environments';
import * as table from '@servegym/environments/table';
import * as jobs from '@servegym/jobs';
import * as openenv from '@servegym/openenv';
import * as client from '@servegym/openenv/client';
import * as definition from '@servegym/openenv/definition';
import * as metrics from '@servegym/openenv/metrics';
import * as protocol from '@servegym/openenv/protocol';
import * as validate from '@servegym/openenv/validate';
import * as simulator from '@servegym/simulator';
import * as profiles from '@servegym/profiles';
import * as operators from '@servegym/operators';
import * as report from '@servegym/operators/report';
import * as traces from '@servegym/operators/traces';
import * as servegym from 'servegym';
const all = { agents, endpoint, environments, table, jobs, openenv, client, definition, metrics, protocol, validate, simulator, profiles, operators, report, traces, servegym };
for (const [name, module] of Object.entries(all)) if (Object.keys(module).length === 0) throw new Error(name);
console.log(process.version, 'ok');
`;

/** Compiles when actions and observations are inferred from the environment's schemas. */
const TYPES = `
import type { llmserve } from '@servegym/environments';
import { connect } from '@servegym/openenv/client';
import { startServer } from 'servegym';
import type { guess } from './guess/environment.ts';

export async function play() {
  const env = await connect<typeof llmserve>('http://localhost:7860');
  const { observation } = await env.reset({ task_id: 'bursty_workload', seed: 42 });
  const depth: number = observation.queue_depth;
  // @ts-expect-error a number is no string
  const text: string = observation.queue_depth;
  const action = {
    ...{ batch_cap: 64, kv_budget_fraction: 0.5, speculation_depth: 0 },
    ...{ prefill_decode_split: false, priority_routing: false },
  };
  await env.step({ ...action, quantization_tier: 'INT8' });
  // @ts-expect-error there is no such tier
  await env.step({ ...action, quantization_tier: 'INT9' });

  const server = await startServer({ environments: ['llmserve'], port: 0 });
  const url: string = server.url;
  // @ts-expect-error a port is a number
  await startServer({ port: '7860' });

  const game = await connect<typeof guess>('http://localhost:8000');
  const { hint } = (await game.reset({ seed: 41 })).observation;
  const known: 'start' | 'higher' | 'lower' | 'found' = hint;
  // @ts-expect-error the hint is an enum, and not any text
  const other: 'warm' = hint;
  return [depth, text, url, known, other];
}
`;

/** 400 requests at four a second, in Mooncake's format, for \`tune\`. */
function drawnTrace(): string {
  return Array.from({ length: 400 }, (_, i) =>
    JSON.stringify({
      timestamp: i * 250,
      input_length: 50 + ((i * 379) % 2000),
      output_length: 10 + ((i * 97) % 300),
    }),
  ).join('\n');
}
