import { execFileSync, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

/** A server in a process of its own. */
export interface ServerProcess {
  /** Without a slash at the end. */
  readonly url: string;
  readonly pid: number;
  /** Default SIGTERM. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** Starts a program that tells its URL in the first line that it prints. */
export async function startServer(command: string, ...args: string[]): Promise<ServerProcess> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const end = () => child.kill('SIGKILL');
  process.once('exit', end);
  const ended = once(child, 'exit').finally(() => process.off('exit', end));
  const failed = ended.then(([code]) => {
    throw new Error(`${[command, ...args].join(' ')} ended with exit code ${code} before it listened`);
  });
  const [line] = await Promise.race([once(createInterface({ input: child.stdout }), 'line'), failed]);
  failed.catch(() => {});
  const url = /http:\/\/[^/\s]+/.exec(String(line))?.[0];
  if (url === undefined) throw new Error(`expected the address of a server, got ${line}`);
  return {
    url,
    pid: child.pid!,
    async stop(signal) {
      child.kill(signal);
      await ended;
    },
  };
}

/** What the function `run` of a module gives, called in a process of its own. */
export async function inChild<T>(module: string, input: unknown): Promise<T> {
  const child = fork(import.meta.filename, [module], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  child.send({ input });
  const failed = once(child, 'exit').then(([code]) => {
    throw new Error(`${module} ended with exit code ${code}`);
  });
  const [result] = await Promise.race([once(child, 'message'), failed]);
  failed.catch(() => {});
  return result as T;
}

let ticksPerSecond: number | undefined;

/** Processor time that a process has had, user and system, s. Linux only. */
export function processorSeconds(pid: number | string): number {
  ticksPerSecond ??= Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));
  // The name of the program, in brackets before these fields, may hold spaces.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

/** Memory of a process, resident now or at its peak, MiB; `NaN` of one that has crashed. Linux only. */
export function memoryMiB(pid: number, what: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(new RegExp(`${what}:\\s+(\\d+)`).exec(status)?.[1]) / 1024;
}

if (process.argv[1] === import.meta.filename) {
  const { run } = await import(process.argv[2]!);
  const [{ input }] = await once(process, 'message');
  process.send!(await run(input), () => process.disconnect());
}
