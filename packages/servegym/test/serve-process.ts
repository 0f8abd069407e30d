import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const main = join(import.meta.dirname, '..', 'src', 'main.ts');

/** How a process ended, and what it wrote. */
export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A `servegym serve` in a process of its own. */
export interface ServeProcess {
  /** Where its API stands, without a slash at the end. */
  readonly url: string;
  /** Ends it, by default as Ctrl-C does, and waits until it is gone. */
  stop(signal?: NodeJS.Signals): Promise<Ending>;
}

/** Starts `servegym serve` on a free port of this machine and waits until it says that it is ready. */
export async function startServe(...args: string[]): Promise<ServeProcess> {
  const { child, ended } = launch('serve', '--port', '0', '--host', '127.0.0.1', ...args);
  const page = await Promise.race([
    pageUrl(child),
    ended.then(({ code, stderr }) => {
      throw new Error(`\`servegym serve\` ended with exit code ${code} before it was ready:\n${stderr}`);
    }),
  ]);
  return {
    url: page.replace(/\/web\/$/, ''),
    stop(signal = 'SIGINT') {
      child.kill(signal);
      return ended;
    },
  };
}

/** Runs `servegym` with these arguments until it ends. */
export function runServegym(...args: string[]): Promise<Ending> {
  return launch(...args).ended;
}

function launch(...args: string[]): { child: ChildProcess; ended: Promise<Ending> } {
  const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal, stdout, stderr }));
  return { child, ended };
}

async function pageUrl(child: ChildProcess): Promise<string> {
  for await (const line of createInterface({ input: child.stdout! })) {
    const url = /^ServeGym is ready: (\S+)/.exec(line)?.[1];
    if (url) return url;
  }
  return new Promise(() => {});
}
