import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import getPort from 'get-port';

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
    const port = await getPort({ host: '127.0.0.1' });
    const home = mkdtempSync(join(tmpdir(), 'servegym-redis-'));
    const program = process.env.SERVEGYM_REDIS ?? 'redis-server';
    const redis = spawn(
      '/bin/sh',
      ['-c', script.replace('exec redis-server -', `exec ${program} - --port ${port} --bind 127.0.0.1`)],
      {
        cwd: home,
        env: { ...process.env, REDIS_PASSWORD: 'open5esame' },
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

  it('compose.yaml follows the schema of Compose', async () => {
    await run(program('check-jsonschema'), [
      '--builtin-schema',
      'vendor.compose-spec',
      join(folder, 'compose.yaml'),
    ]);
  });
});
