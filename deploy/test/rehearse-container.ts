// Does what deploy/Dockerfile says, step by step, in a folder instead of a container, for machines without a container
// engine: the same installs, the same copies, the same command with the same variables. As root it starts the server as
// the image's user, who may write to /tmp only. Tells the size, the time until the server is healthy and how it stops.
//
//   node deploy/test/rehearse-container.ts           the image of this checkout
//   node deploy/test/rehearse-container.ts FOLDER    that of a Space, in the folder that build-space.ts has made
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import getPort from 'get-port';
import { commandOf, copyOf, readStages, type Stage, variablesOf } from './dockerfile-steps.ts';

/** Longest that the server may take to be healthy, or to stop, ms. */
const LONGEST_WAIT_MS = 30_000;
/** Folders that are not in a checkout, or that `.dockerignore` leaves out. */
const LEFT_OUT = new Set(['node_modules', 'dist', '.git', '.venv']);

const [space] = process.argv.slice(2);
const context = space === undefined ? resolve(import.meta.dirname, '../..') : resolve(space);
const dockerfile = join(space === undefined ? join(context, 'deploy') : context, 'Dockerfile');
const work = mkdtempSync(join(tmpdir(), 'servegym-container-'));
chmodSync(work, 0o755);
try {
  const stages = readStages(readFileSync(dockerfile, 'utf8'));
  const root = build(stages);
  const [kib] = execFileSync('du', ['-sk', join(root, 'servegym')], { encoding: 'utf8' }).split('\t');
  const nodeBytes = statSync(join(root, 'usr/local/bin/node')).size;
  const { server, url, store, isRoot, healthyMs } = await start(root, stages.at(-1)!);
  const page = await fetch(`${url}/web/`);
  const headers = { 'content-type': 'application/json' };
  const reset = await fetch(`${url}/reset`, { method: 'POST', headers, body: '{}' });
  const ended = once(server, 'exit');
  const stoppedAt = performance.now();
  server.kill('SIGTERM');
  const [code] = await Promise.race([ended, sleep(LONGEST_WAIT_MS, ['no end'])]);
  console.table({
    'application, MB': Math.round((Number(kib) * 1024) / 1e6),
    'node, MB': Math.round(nodeBytes / 1e6),
    'healthy after, ms': Math.round(healthyMs),
    unprivileged: isRoot,
    'GET /web/': page.status,
    'POST /reset': reset.status,
    'exit code': code,
    'stopped after, ms': Math.round(performance.now() - stoppedAt),
    'sessions kept': existsSync(join(store, 'sessions.db')),
  });
  rmSync(store, { recursive: true });
  process.exitCode = page.ok && reset.ok && code === 0 ? 0 : 1;
} finally {
  rmSync(work, { recursive: true });
}

/** Carries out the stages; each has a folder that stands for its root. Gives that of the last. */
function build(stages: readonly Stage[]): string {
  let root = work;
  for (const [index, { alias, instructions }] of stages.entries()) {
    root = join(work, alias ?? `stage-${index}`);
    let folder = root;
    for (const instruction of instructions) {
      const { name, rest } = instruction;
      if (name === 'WORKDIR') folder = join(root, rest);
      mkdirSync(folder, { recursive: true });
      if (name === 'COPY') copy(instruction, root, folder);
      if (name !== 'RUN') continue;
      console.log(`RUN ${rest.length > 90 ? `${rest.slice(0, 90)} ...` : rest}`);
      execFileSync('sh', ['-ec', rest], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
    }
  }
  return root;
}

function copy(instruction: Stage['instructions'][number], root: string, folder: string): void {
  const { from, sources, target } = copyOf(instruction);
  for (const source of sources) {
    const path = from ? join(work, from, source) : join(context, source);
    // The images' own Node is this one here.
    const origin = from && source === '/usr/local/bin/node' ? process.execPath : path;
    const base = target.startsWith('/') ? join(root, target) : join(folder, target);
    cpSync(origin, target.endsWith('/') ? join(base, basename(source)) : base, {
      recursive: true,
      verbatimSymlinks: true,
      filter: (each) => Boolean(from) || !LEFT_OUT.has(basename(each)),
    });
  }
}

async function start(root: string, stage: Stage) {
  const port = await getPort({ host: '127.0.0.1' });
  const [, ...args] = commandOf(stage);
  const restOf = (name: string) => stage.instructions.findLast((each) => each.name === name)?.rest;
  const [uid, gid] = restOf('USER')?.split(':').map(Number) ?? [];
  const store = mkdtempSync(join(tmpdir(), 'servegym-container-tmp-'));
  chmodSync(store, 0o777);
  const isRoot = process.getuid?.() === 0;
  const startedAt = performance.now();
  const server = spawn(join(root, 'usr/local/bin/node'), args, {
    cwd: join(root, restOf('WORKDIR') ?? '/'),
    env: {
      ...variablesOf(stage),
      PATH: '/usr/bin:/bin',
      PORT: String(port),
      SERVEGYM_STORE: join(store, 'sessions.db'),
    },
    stdio: ['ignore', 'ignore', 'inherit'],
    ...(isRoot && { uid, gid }),
  });
  const url = `http://127.0.0.1:${port}`;
  const isHealthy = () =>
    fetch(`${url}/health`)
      .then(({ ok }) => ok)
      .catch(() => false);
  while (!(await isHealthy())) {
    if (server.exitCode !== null) throw new Error(`the server ended with exit code ${server.exitCode}`);
    if (performance.now() - startedAt > LONGEST_WAIT_MS)
      throw new Error('the server was not healthy in time');
    await sleep(20);
  }
  return { server, url, store, isRoot, healthyMs: performance.now() - startedAt };
}
