import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AGENT_JOB_KINDS } from '@servegym/agents';
import { type JobEngine, type JobKinds, LocalJobs } from '@servegym/jobs';
import { TUNE_JOB_KINDS } from '@servegym/operators';
import packageJson from '../../package.json' with { type: 'json' };
import { stopOnSignals } from '../server/listening.ts';
import { loadPackages, redisConnection } from '../server/session-storage.ts';
import { wholeNumber } from './arguments/options.ts';
import { defineCommand, type OptionValues } from './command-table.ts';
import { untilInterrupted } from './failure.ts';

/** The kinds of jobs that commands submit, and the module that does each. */
export const JOB_KINDS: JobKinds = { ...AGENT_JOB_KINDS, ...TUNE_JOB_KINDS };

const MOST_THREADS = 256;

/** `--threads` of commands with jobs. */
export const threads = {
  value: '<n>',
  help: 'jobs at once; results do not depend on it',
  parse: wholeNumber(1, MOST_THREADS),
  default: Math.min(MOST_THREADS, availableParallelism()),
} as const;
/** `--queue` of commands with jobs. */
export const queue = {
  value: '<url>',
  help: 'send the jobs to `servegym worker`s at redis://...; same results',
} as const;

/** Threads or queue that do the jobs of a command; `redis://...`, or threads of this process when it is left out. */
export const jobOptions = { threads, queue } as const;
export type JobOptions = OptionValues<typeof jobOptions>;

/**
 * Runs `use` with the engine that the options ask for, and closes it. Ctrl-C and SIGTERM stop the jobs that are under way,
 * with `message`.
 * @throws {JobError} when nobody answers at the queue.
 */
export async function withJobs<Result>(
  options: JobOptions,
  use: (jobs: JobEngine) => Promise<Result>,
  message?: string,
): Promise<Result> {
  const jobs = stoppable(await openJobs(options), message);
  try {
    return await use(jobs);
  } finally {
    await jobs.close();
  }
}

/** The engine that the options ask for. `close` it. @throws {JobError} when nobody answers at the queue. */
export async function openJobs({ threads, queue }: JobOptions): Promise<JobEngine> {
  if (queue === undefined) return new LocalJobs({ kinds: JOB_KINDS, threads });
  const { QueuedJobs } = await importQueue();
  return QueuedJobs.connect({
    url: redisConnection(queue),
    version: codeVersion(),
    onNotice: (notice) => console.error(`note: ${notice}`),
  });
}

/**
 * The part of jobs that needs Redis, which a plain installation leaves out.
 * @throws {InputError} when its packages are not installed.
 */
export function importQueue(): Promise<typeof import('@servegym/jobs/queue')> {
  return loadPackages(() => import('@servegym/jobs/queue'), 'Queues need', ['bullmq', 'ioredis']);
}

/** The same engine, whose jobs stop, here and at the queue, at Ctrl-C or SIGTERM; a second signal ends the process at once. */
export function stoppable(engine: JobEngine, message?: string): JobEngine {
  const { signal, close } = untilInterrupted(message === undefined ? undefined : () => message);
  return stoppedBy(engine, signal, close);
}

/** The same engine, whose jobs stop when a signal aborts. */
export function stoppedBy(engine: JobEngine, stop: AbortSignal, onClose = () => {}): JobEngine {
  return {
    width: engine.width,
    share: (bytes) => engine.share(bytes),
    run: (jobs, { signal = stop, ...options } = {}) =>
      engine.run(jobs, { ...options, signal: AbortSignal.any([stop, signal]) }),
    async close() {
      onClose();
      await engine.close();
    },
  };
}

/** Packages beside this one on which the results of jobs depend. */
const PACKAGES = ['simulator', 'profiles', 'environments', 'agents', 'jobs', 'operators'];

/**
 * The version of everything that jobs run: that of the package, and a hash of the sources, so that two checkouts
 * between releases differ too.
 */
export function codeVersion(): string {
  const folders = [
    join(import.meta.dirname, '..'),
    ...PACKAGES.map((name) => sourceFolder(`@servegym/${name}`)),
  ];
  return `${packageJson.version}-${sourceHash(folders).slice(0, 8)}`;
}

/** Folder of the sources of a package. */
export function sourceFolder(packageName: string): string {
  return dirname(fileURLToPath(import.meta.resolve(packageName)));
}

/** A hash, in hexadecimal, of all sources under the folders, tests not included. */
export function sourceHash(folders: readonly string[]): string {
  const hash = createHash('sha256');
  for (const [index, folder] of folders.entries()) {
    const files = globSync('**/*.{ts,js,json,wasm}', { cwd: folder })
      .filter((path) => !/\.(test|fixture)\.ts$/.test(path))
      .map((path) => path.split(sep).join('/'))
      .sort();
    for (const file of files) hash.update(`${index} ${file}\0`).update(readFileSync(join(folder, file)));
  }
  return hash.digest('hex');
}

export const workerCommand = () =>
  defineCommand({
    options: {
      queue: { ...queue, required: true, help: 'redis://host:6379, or redis+sentinel://host:26379/name' },
      threads,
      quiet: { help: 'say nothing of single jobs' },
      json: { help: 'say it in JSON lines' },
    },
    after: `Start as many as you like, on as many machines. A job whose worker dies or hangs goes to another one. Ctrl-C or SIGTERM
finishes the jobs that run and ends; a second one ends at once. A worker takes jobs only of its own version.`,
    async action({ queue, threads, quiet, json }) {
      const version = codeVersion();
      const say = (event: string, details: Record<string, unknown>, line: string) => {
        console.log(json ? JSON.stringify({ event, ...details }) : line);
      };
      let finished = 0;
      const { QueueWorker } = await importQueue();
      const worker = await QueueWorker.start({
        url: redisConnection(queue),
        version,
        kinds: JOB_KINDS,
        threads,
        onFinished({ kind, wallMs, failed }) {
          finished += 1;
          if (quiet) return;
          const event = failed ? 'failed' : 'finished';
          const wall_s = wallMs / 1000;
          say(event, { kind, wall_s }, `${event.padEnd(8)} ${kind}  ${wall_s.toFixed(2)} s`);
        },
        onNotice: (notice) => console.error(`note: ${notice}`),
      });
      const { address } = worker;
      const line = `waiting for jobs at ${address}, ${threads} at once, version ${version}`;
      say('ready', { queue: address, version, threads }, line);
      await stopOnSignals(
        { heldSessions: () => 0, drain: () => worker.close(false), close: () => worker.close(true) },
        { graceMs: 0, say: console.log },
      );
      say('stopped', { jobs: finished }, `stopped after ${finished.toLocaleString('en-US')} jobs`);
    },
  });
