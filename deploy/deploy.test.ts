import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import getPort from 'get-port';
import { parse } from 'yaml';
import { line, writeTrace } from '../maintenance/test-servers/diff-traffic.ts';
import { temporaryFolder } from '../maintenance/test-servers/temporary-folder.ts';
import { commandOf, copyOf, readStages, variablesOf } from './test/dockerfile-steps.ts';

const root = resolve(import.meta.dirname, '..');
const stages = readStages(readFileSync(join(import.meta.dirname, 'Dockerfile'), 'utf8'));
const last = stages.at(-1)!;

describe('the Dockerfile', () => {
  it('copies what is there, and from stages that come before', () => {
    const ignored = readFileSync(join(root, '.dockerignore'), 'utf8').split('\n');
    for (const [index, stage] of stages.entries()) {
      for (const instruction of stage.instructions.filter(({ name }) => name === 'COPY')) {
        const { from, sources } = copyOf(instruction);
        if (from)
          assert.ok(
            stages.slice(0, index).some(({ alias }) => alias === from),
            from,
          );
        else
          for (const source of sources) {
            assert.ok(existsSync(join(root, source)), source);
            assert.ok(!ignored.includes(source.replace('./', '')), `${source} is in .dockerignore`);
          }
      }
    }
  });

  it('starts the server as a user without rights, in a folder that is there, and keeps sessions where it may write', () => {
    const folder = last.instructions.findLast(({ name }) => name === 'WORKDIR')?.rest;
    const [node, program, ...args] = commandOf(last);
    assert.deepEqual([node, args], ['node', ['serve']]);
    assert.ok(existsSync(join(root, program!)));
    assert.equal(folder, '/servegym');
    assert.match(last.instructions.find(({ name }) => name === 'USER')!.rest, /^[1-9]\d*:[1-9]\d*$/);
    const { SERVEGYM_STORE, SERVEGYM_ENV, PORT, HOST, SERVEGYM_ALLOWED_HOSTS } = variablesOf(last);
    assert.deepEqual([HOST, SERVEGYM_ALLOWED_HOSTS], ['0.0.0.0', '*']);
    assert.match(SERVEGYM_STORE!, /^\/tmp\//);
    assert.equal(SERVEGYM_ENV, 'llmserve');
    assert.ok(last.instructions.some(({ name, rest }) => name === 'EXPOSE' && rest === PORT));
  });

  it('has the version of Node that the project is developed on', () => {
    const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const [major] = devDependencies['@types/node'].split('.');
    assert.ok(stages.length > 1);
    for (const { base } of stages.slice(0, -1)) assert.equal(base, `node:${major}-bookworm-slim`);
  });
});

const outputs = temporaryFolder();
const trace = writeTrace(outputs);

describe('the GitHub action', () => {
  const path = join(import.meta.dirname, 'github-action/action.yml');
  const { inputs, runs } = parse(readFileSync(path, 'utf8')) as {
    inputs: { version: { default: string } };
    runs: { steps: { id?: string; run: string; env: object }[] };
  };
  const { steps } = runs;

  /** Runs the steps as GitHub does: each a bash script, with outputs in a file. */
  async function act(baseline: string, candidate: string, earlier?: number) {
    const home = join(outputs, `act-${candidate.length}`);
    const bin = join(home, 'bin');
    mkdirSync(bin, { recursive: true });
    const main = join(import.meta.dirname, '../packages/servegym/src/main.ts');
    const tool = (name: string, script: string) => {
      writeFileSync(join(bin, name), `#!/usr/bin/env bash\n${script}\n`);
      chmodSync(join(bin, name), 0o755);
    };
    tool('npx', `echo "$2" > "${home}/npx"; shift 2; exec "${process.execPath}" "${main}" "$@"`);
    // Lists the comments that an earlier run has left, if any; notes what is sent.
    tool(
      'gh',
      `case "$*" in *--paginate*) cat "${home}/earlier" 2>/dev/null || true ;; *) printf '%s\\n' "$@" > "${home}/gh"; cat "$RUNNER_TEMP/comment.md" >> "${home}/gh" ;; esac`,
    );
    if (earlier !== undefined) writeFileSync(join(home, 'earlier'), `${earlier}\n`);
    const [before_, after_] = [join(home, 'before.sh'), join(home, 'after.sh')];
    writeFileSync(before_, baseline);
    writeFileSync(after_, candidate);
    const output = join(home, 'output');
    rmSync(output, { force: true });
    writeFileSync(output, '');
    const env: Record<string, string> = {
      ...(process.env as Record<string, string>),
      ...{ PATH: `${bin}:${process.env.PATH}`, RUNNER_TEMP: home, GITHUB_OUTPUT: output },
      ...{ GITHUB_STEP_SUMMARY: join(home, 'summary'), BASELINE: before_, CANDIDATE: after_, TRACE: trace },
      ...{
        SLO: 'ttft_p99=1s,tpot_p99=40ms',
        GPU: 'h100',
        ARGUMENTS: '--requests 800',
        VERSION: inputs.version.default,
        GITHUB_ACTION_PATH: dirname(path),
        NUMBER: '7',
        COMMENTS: 'repos/o/r/issues',
      },
    };
    const codes: number[] = [];
    for (const { run } of steps) {
      env.STATUS = /status=(\d)/.exec(readFileSync(output, 'utf8'))?.[1] ?? '';
      const script = join(home, 'step.sh');
      writeFileSync(script, run);
      const done = promisify(execFile)('bash', ['--noprofile', '--norc', '-eo', 'pipefail', script], { env });
      codes.push(
        await done.then(
          () => 0,
          (error) => error.code,
        ),
      );
    }
    return {
      codes,
      installed: readFileSync(join(home, 'npx'), 'utf8'),
      comment: readFileSync(join(home, 'gh'), 'utf8'),
      summary: readFileSync(join(home, 'summary'), 'utf8'),
    };
  }

  it('comments the table, and fails where a bound breaks', async () => {
    const { codes, comment, summary } = await act(line(), line('--max-num-seqs 4'));
    assert.deepEqual(codes, [0, 0, 0, 1]);
    assert.match(comment, /^api\n--silent\nrepos\/o\/r\/issues\/7\/comments\n-F\nbody=@/);
    assert.match(comment, /<!-- servegym diff -->\n\*\*breaks: TTFT p99/);
    assert.match(summary, /breaks: TTFT p99/);
  });

  it('passes where all holds, and edits the comment of the run before', async () => {
    const { codes, comment, summary, installed } = await act(line(), line('--max-num-seqs 256'), 99);
    const { version } = JSON.parse(readFileSync(join(root, 'packages/servegym/package.json'), 'utf8'));
    assert.equal(installed, `servegym@${version}\n`);
    assert.deepEqual(codes, [0, 0, 0, 0]);
    assert.match(summary, /every bound holds/);
    assert.match(comment, /^api\n--silent\n--method\nPATCH\nrepos\/o\/r\/issues\/comments\/99\n/);
  });
});

const run = promisify(execFile);
const folder = import.meta.dirname;

/** Manifests for the API server; kustomize alone reads its own file. */
const manifests = globSync('kubernetes/*.yaml', { cwd: folder })
  .sort()
  .filter((file) => !file.endsWith('kustomization.yaml'))
  .map((file) => ({ file, text: readFileSync(join(folder, file), 'utf8') }));

/** A program of the Python that `npm test` sets up. */
function program(name: string): string {
  const python = process.env.SERVEGYM_PYTHON;
  assert.ok(python, 'SERVEGYM_PYTHON names no Python; `npm test` sets it');
  return join(dirname(python), name);
}

/** Starts the Redis of a script, and expects it to ask for the password that a variable holds. */
async function requirePassword(script: string, variable: string): Promise<void> {
  const port = await getPort({ host: '127.0.0.1' });
  const home = mkdtempSync(join(tmpdir(), 'servegym-redis-'));
  const program = process.env.SERVEGYM_REDIS ?? 'redis-server';
  const redis = spawn(
    '/bin/sh',
    ['-c', script.replace('exec redis-server -', `exec ${program} - --port ${port} --bind 127.0.0.1`)],
    {
      cwd: home,
      env: { ...process.env, [variable]: 'open5esame' },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  try {
    for await (const said of redis.stdout) if (String(said).includes('Ready to accept connections')) break;
    const ask = async (...commands: string[]) => {
      const socket = connect(port, '127.0.0.1');
      socket.end(commands.map((command) => `${command}\r\n`).join(''));
      return await readText(socket);
    };
    assert.match(await ask('PING'), /^-NOAUTH/);
    assert.equal(await ask('AUTH open5esame', 'PING'), '+OK\r\n+PONG\r\n');
  } finally {
    redis.kill();
    await once(redis, 'exit');
    rmSync(home, { recursive: true });
  }
}

describe('what is deployed', () => {
  for (const { file } of manifests) {
    it(`${file} follows the schemas of Kubernetes`, async () => {
      await run(program('kubernetes-validate'), ['--strict', '--quiet', join(folder, file)]);
    });
  }

  it('a manifest that does not follow them is found', async () => {
    const broken = readFileSync(join(folder, 'kubernetes/worker.yaml'), 'utf8').replace(
      'replicas:',
      'replicaz:',
    );
    const path = join(mkdtempSync(join(tmpdir(), 'servegym-manifest-')), 'worker.yaml');
    writeFileSync(path, broken);
    try {
      const asked = run(program('kubernetes-validate'), ['--strict', path]);
      await assert.rejects(asked, ({ stdout, stderr }) => /replicaz/.test(stdout + stderr));
    } finally {
      rmSync(dirname(path), { recursive: true });
    }
  });

  it('kustomization.yaml lists files that are there', () => {
    const text = readFileSync(join(folder, 'kubernetes/kustomization.yaml'), 'utf8');
    const listed = [...text.matchAll(/^ {2}- (\S+\.yaml)$/gm)].map(([, name]) => name);
    assert.ok(listed.length >= 5);
    for (const name of listed) assert.ok(readFileSync(join(folder, 'kubernetes', name!), 'utf8').length > 0);
  });

  it('every image is one that kustomization.yaml can pin, by a tag or by a digest', () => {
    const text = readFileSync(join(folder, 'kubernetes/kustomization.yaml'), 'utf8');
    const images = new Map(
      [...text.matchAll(/^ {2}- name: (\S+)\n {4}newName: \S+\n {4}(newTag: \S+|digest: \S+)$/gm)].map(
        ([, name, version]) => [name!, version!],
      ),
    );
    for (const [name, version] of images)
      assert.match(version, /^(newTag: [\w.-]+|digest: sha256:[0-9a-f]{64})$/, name);
    const used = manifests.flatMap(({ text }) =>
      [...text.matchAll(/^ +image: (\S+)$/gm)].map(([, image]) => image!),
    );
    assert.deepEqual(new Set(used), new Set(images.keys()));
  });

  it('no pod has a token of the Kubernetes API, and all have limits of memory and disk', () => {
    for (const { file, text } of manifests) {
      const count = (pattern: RegExp) => text.match(pattern)?.length ?? 0;
      const containers = count(/^ +image: /gm);
      assert.equal(count(/^ {6}automountServiceAccountToken: false$/gm), containers, file);
      assert.equal(
        count(/^ {12}limits:\n {14}memory: \S+\n {14}ephemeral-storage: \S+$/gm),
        containers,
        file,
      );
      assert.equal(count(/emptyDir: \{\}/g), 0, file);
    }
  });

  it('Redis has a password that stands in no manifest, and whoever uses it may reach it', () => {
    for (const { file, text } of manifests) {
      const users = text.match(/redis:\/\/\S*/g) ?? [];
      for (const url of users) assert.equal(url, 'redis://:$(REDIS_PASSWORD)@redis:6379', file);
      const fromSecret = /name: REDIS_PASSWORD\n {14}valueFrom:\n {16}secretKeyRef:/.test(text);
      assert.equal(fromSecret, users.length > 0 || file.endsWith('redis.yaml'), file);
      assert.equal(/^ {8}redis-client: "true"$/m.test(text), users.length > 0, file);
    }
  });

  it('its Redis asks for the password', async () => {
    const { text } = manifests.find(({ file }) => file.endsWith('redis.yaml'))!;
    const script = /^ {10}args:\n {12}- \|\n((?: {14}.*\n)+)/m.exec(text)![1].replaceAll(/^ {14}/gm, '');
    await requirePassword(script, 'REDIS_PASSWORD');
  });

  it('the balancer of compose.yaml hands on the host with its port, and overwrites what clients claim', () => {
    const compose = readFileSync(join(folder, 'compose.yaml'), 'utf8');
    const headers = Object.fromEntries(
      [...compose.matchAll(/^ +proxy_set_header (\S+) (\S+);$/gm)].map(([, name, value]) => [name, value]),
    );
    assert.equal(headers.Host, '$$http_host');
    assert.equal(headers['X-Forwarded-Host'], '$$http_host');
    assert.equal(headers['X-Forwarded-For'], '$$proxy_add_x_forwarded_for');
    assert.match(compose, /SERVEGYM_TRUST_PROXY: "1"/);
  });

  it('`dev` of compose.yaml starts the server anew when a file of it changes', async () => {
    const compose = readFileSync(join(folder, 'compose.yaml'), 'utf8');
    const command = /command: \["sh", "-c", "npm ci && exec (node --watch (\S+) serve)"\]/.exec(compose)!;
    const [, watch, main] = command as unknown as [string, string, string];
    const root = dirname(folder);
    const server = spawn(process.execPath, watch.split(' ').slice(1), {
      cwd: root,
      env: { ...process.env, PORT: '0', SERVEGYM_STORE: 'memory', SERVEGYM_DRAIN_TIMEOUT: '0' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      let starts = 0;
      for await (const said of server.stdout) {
        starts += String(said).split('ServeGym is ready').length - 1;
        if (starts === 2) break;
        if (starts === 1) utimesSync(join(root, main), new Date(), new Date());
      }
      assert.equal(starts, 2);
    } finally {
      server.kill();
      await once(server, 'exit');
    }
  });

  it('compose.yaml opens nothing to other machines by itself, and its Redis asks for a password', async () => {
    const { services } = parse(readFileSync(join(folder, 'compose.yaml'), 'utf8')) as {
      services: Record<
        string,
        { ports?: string[]; command?: string[]; environment?: Record<string, string> }
      >;
    };
    for (const { ports = [] } of Object.values(services))
      for (const port of ports) assert.match(port, /^(127\.0\.0\.1|\$\{SERVEGYM_PUBLISH:-127\.0\.0\.1\}):/);
    assert.ok('SERVEGYM_TOKEN' in services.server.environment!);
    const [, , script] = services.redis.command!;
    assert.match(services.redis.environment!.REDISCLI_AUTH!, /^\$\{REDIS_PASSWORD:\?/);
    const redisUrls = JSON.stringify(services).match(/redis:\/\/[^"]*/g)!;
    for (const url of redisUrls) assert.match(url, /^redis:\/\/:\$\{REDIS_PASSWORD\}@redis:6379$/);
    await requirePassword(script.replaceAll('$$', '$'), 'REDISCLI_AUTH');
  });

  it('compose.yaml follows the schema of Compose', async () => {
    await run(program('check-jsonschema'), [
      '--builtin-schema',
      'vendor.compose-spec',
      join(folder, 'compose.yaml'),
    ]);
  });
});
