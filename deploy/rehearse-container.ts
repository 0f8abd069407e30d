// Does what deploy/Dockerfile says, step by step, in a folder instead of a container, for machines without a container
// engine: the same installs, the same copies, the same command with the same variables. As root it starts the server as
// the image's user, who may write to /tmp only. Tells the size, the time until the server is healthy and how it stops.
//
//   node deploy/rehearse-container.ts [--context FOLDER] [--dockerfile FILE] [--keep] [--json]
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
import { parseArgs } from 'node:util';
import getPort from 'get-port';
import { commandOf, copyOf, readStages, type Stage, variablesOf } from './dockerfile-steps.ts';

const { values } = parseArgs({
  options: {
    context: { type: 'string', default: resolve(import.meta.dirname, '..') },
    dockerfile: { type: 'string', default: join(import.meta.dirname, 'Dockerfile') },
    keep: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});
/** Longest that the server may take to be healthy, or to stop, ms. */
const LONGEST_WAIT_MS = 30_000;
/** Folders that are not in a checkout, or that `.dockerignore` leaves out. */
const LEFT_OUT = new Set(['node_modules', 'dist', '.git', '.venv']);

const work = mkdtempSync(join(tmpdir(), 'servegym-container-'));
chmodSync(work, 0o755);

function say(text: string): void {
  if (!values.json) console.log(text);
}

/** Carries out the stages; each has a folder that stands for its root. */
function build(stages: readonly Stage[]): string {
  for (const [index, stage] of stages.entries()) {
    const root = rootOf(stage, index);
    let folder = root;
    mkdirSync(root, { recursive: true });
    for (const instruction of stage.instructions) {
      const { name, rest } = instruction;
      if (name === 'WORKDIR') {
        folder = join(root, rest);
        mkdirSync(folder, { recursive: true });
      } else if (name === 'COPY') {
        copy(instruction, root, folder);
      } else if (name === 'RUN') {
        say(`RUN ${rest.length > 90 ? `${rest.slice(0, 90)} ...` : rest}`);
        execFileSync('sh', ['-ec', rest], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
      }
    }
  }
  return rootOf(stages.at(-1)!, stages.length - 1);
}

function rootOf({ alias }: Stage, index: number): string {
  return join(work, alias ?? `stage-${index}`);
}

function copy(instruction: Stage['instructions'][number], root: string, folder: string): void {
  const { from, sources, target } = copyOf(instruction);
  for (const source of sources) {
    const path = from ? join(work, from, source) : join(values.context, source);
    // The images' own Node is this one here.
    const origin = from && source === '/usr/local/bin/node' ? process.execPath : path;
    const base = target.startsWith('/') ? join(root, target) : join(folder, target);
    const destination = target.endsWith('/') ? join(base, basename(source)) : base;
    mkdirSync(join(destination, '..'), { recursive: true });
    cpSync(origin, destination, {
      recursive: true,
      verbatimSymlinks: true,
      filter: (each) => Boolean(from) || !LEFT_OUT.has(basename(each)),
    });
  }
}

function sizeMB(path: string): number {
  const [kib] = execFileSync('du', ['-sk', path], { encoding: 'utf8' }).split('\t');
  return Math.round((Number(kib) * 1024) / 1e6);
}

async function start(root: string, stage: Stage) {
  const port = await getPort({ host: '127.0.0.1' });
  const [, ...args] = commandOf(stage);
  const folder = stage.instructions.findLast(({ name }) => name === 'WORKDIR')?.rest ?? '/';
  const [user, group] =
    stage.instructions
      .find(({ name }) => name === 'USER')
      ?.rest.split(':')
      .map(Number) ?? [];
  const store = mkdtempSync(join(tmpdir(), 'servegym-container-tmp-'));
  chmodSync(store, 0o777);
  const isRoot = process.getuid?.() === 0;
  const startedAt = performance.now();
  const server = spawn(join(root, 'usr/local/bin/node'), args, {
    cwd: join(root, folder),
    env: {
      ...variablesOf(stage),
      PATH: '/usr/bin:/bin',
      PORT: String(port),
      SERVEGYM_STORE: join(store, 'sessions.db'),
    },
    stdio: ['ignore', 'ignore', 'inherit'],
    ...(isRoot && user !== undefined && { uid: user, gid: group }),
  });
  const url = `http://127.0.0.1:${port}`;
  while (!(await isHealthy(url))) {
    if (server.exitCode !== null) throw new Error(`the server ended with exit code ${server.exitCode}`);
    if (performance.now() - startedAt > LONGEST_WAIT_MS)
      throw new Error('the server was not healthy in time');
    await sleep(20);
  }
  return { server, url, store, isRoot, healthyMs: performance.now() - startedAt };
}

async function isHealthy(url: string): Promise<boolean> {
  return fetch(`${url}/health`).then(
    (answer) => answer.ok,
    () => false,
  );
}

try {
  const stages = readStages(readFileSync(values.dockerfile, 'utf8'));
  const root = build(stages);
  const last = stages.at(-1)!;
  const applicationMB = sizeMB(join(root, 'servegym'));
  const nodeMB = Math.round(statSync(join(root, 'usr/local/bin/node')).size / 1e6);
  const { server, url, store, isRoot, healthyMs } = await start(root, last);
  const page = await fetch(`${url}/web/`);
  const reset = await fetch(`${url}/reset`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  });
  const ended = once(server, 'exit');
  const stoppedAt = performance.now();
  server.kill('SIGTERM');
  const [code] = await Promise.race([ended, sleep(LONGEST_WAIT_MS, ['no end'])]);
  const report = {
    application_mb: applicationMB,
    node_mb: nodeMB,
    healthy_ms: Math.round(healthyMs),
    unprivileged: isRoot,
    web: page.status,
    reset: reset.status,
    exit_code: code,
    stopped_ms: Math.round(performance.now() - stoppedAt),
    kept_sessions: existsSync(join(store, 'sessions.db')),
  };
  if (values.json) console.log(JSON.stringify(report));
  else console.table(report);
  rmSync(store, { recursive: true });
  process.exitCode = page.ok && reset.ok && code === 0 ? 0 : 1;
} finally {
  if (values.keep) say(`kept: ${work}`);
  else rmSync(work, { recursive: true });
}
