import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const main = join(import.meta.dirname, '../../packages/servegym/src/main.ts');

/** End and output of a process. */
export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A `servegym serve` in a process of its own. */
export interface ServeProcess {
  /** Address of its API, without a slash at the end. */
  readonly url: string;
  readonly pid: number;
  /** Sends it a signal, and waits for nothing. */
  signal(signal: NodeJS.Signals): void;
  /** Waits until it has written a line to its standard output that this matches. Throws when it ends without. */
  said(pattern: RegExp): Promise<RegExpExecArray>;
  /** Ends it, by default as Ctrl-C does, and waits until it is gone. */
  stop(signal?: NodeJS.Signals): Promise<Ending>;
  /** Resolves when it is gone. */
  readonly ended: Promise<Ending>;
}

type Variables = Readonly<Record<string, string | undefined>>;

/** Sessions are not kept, unless a test says where, so that no test writes into a person's folders. */
const NOTHING_KEPT = { SERVEGYM_STORE: 'memory' };

/** Starts `servegym serve` on a free port of this machine and waits until it says that it is ready. */
export function startServe(...args: string[]): Promise<ServeProcess> {
  return startServeWith(NOTHING_KEPT, ...args);
}

/** Starts `servegym serve` with these variables in its environment; `undefined` takes one away. */
export function startServeWith(variables: Variables, ...args: string[]): Promise<ServeProcess> {
  return startServeOn('127.0.0.1', variables, ...args);
}

/** Starts `servegym serve` at an address; `undefined` leaves it to the server. */
export async function startServeOn(
  host: string | undefined,
  variables: Variables,
  ...args: string[]
): Promise<ServeProcess> {
  const at = host === undefined ? [] : ['--host', host];
  const launched = launch(variables, 'serve', '--port', '0', ...at, ...args);
  return serving(launched, /^ServeGym is ready: (\S+)\/web\//m);
}

/** Starts `servegym season serve` on a free port of this machine and waits until it says that it is ready. */
export function startSeason(file: string, ...args: string[]): Promise<ServeProcess> {
  const launched = launch(NOTHING_KEPT, 'season', 'serve', file, '--port', '0', ...args);
  return serving(launched, /^Season .* is ready: (\S+)/m);
}

async function serving(
  { child, ended, said }: ReturnType<typeof launch>,
  ready: RegExp,
): Promise<ServeProcess> {
  const [, url] = await said(ready);
  return {
    url: url!,
    pid: child.pid!,
    said,
    ended,
    signal: (signal) => void child.kill(signal),
    stop(signal = 'SIGINT') {
      child.kill(signal);
      return ended;
    },
  };
}

/** Starts `servegym` with these arguments. */
export function startServegym(...args: string[]): {
  signal(signal: NodeJS.Signals): void;
  /** Waits until it has written to its standard error what this matches. Throws when it ends without. */
  noted(pattern: RegExp): Promise<RegExpExecArray>;
  /** Resolves when it is gone. */
  readonly ended: Promise<Ending>;
} {
  const { child, ended, said } = launch(NOTHING_KEPT, ...args);
  return {
    ended,
    noted: (pattern) => said(pattern, 'stderr'),
    signal: (signal) => void child.kill(signal),
  };
}

/** Runs `servegym` with these arguments until it ends. */
export function runServegym(...args: string[]): Promise<Ending> {
  return runServegymWith(NOTHING_KEPT, ...args);
}

/** Runs `servegym` with these variables in its environment; `undefined` takes one away. */
export function runServegymWith(variables: Variables, ...args: string[]): Promise<Ending> {
  return launch(variables, ...args).ended;
}

function launch(variables: Variables, ...args: string[]) {
  const child = spawn(process.execPath, [main, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...variables },
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  const ended: Promise<Ending> = once(child, 'close').then(([code, signal]) => ({
    code,
    signal,
    stdout,
    stderr,
  }));
  const said = async (pattern: RegExp, stream: 'stdout' | 'stderr' = 'stdout'): Promise<RegExpExecArray> => {
    for (;;) {
      const match = pattern.exec(stream === 'stdout' ? stdout : stderr);
      if (match) return match;
      const ending = await Promise.race([once(child[stream], 'data'), ended]);
      if (!Array.isArray(ending)) {
        throw new Error(
          `\`servegym ${args.join(' ')}\` ended with ${ending.signal ?? `exit code ${ending.code}`} and never said ${pattern}:\n${ending.stderr}`,
        );
      }
    }
  };
  return { child, ended, said };
}
