import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const main = join(import.meta.dirname, '../../packages/servegym/src/main.ts');

/** A `servegym serve` in a process of its own. */
export type ServeProcess = Awaited<ReturnType<typeof serving>>;

type Variables = Readonly<Record<string, string | undefined>>;

/** Sessions are not kept, unless a test says where, so that no test writes into a person's folders. */
const NOTHING_KEPT = { SERVEGYM_STORE: 'memory' };

/** Starts `servegym serve` on a free port of this machine and waits until it says that it is ready. */
export const startServe = (...args: string[]) => startServeWith(NOTHING_KEPT, ...args);

/** Starts `servegym serve` with these variables in its environment; `undefined` takes one away. */
export const startServeWith = (variables: Variables, ...args: string[]) =>
  startServeOn('127.0.0.1', variables, ...args);

/** Starts `servegym serve` at an address; `undefined` leaves it to the server. */
export function startServeOn(
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

async function serving(launched: ReturnType<typeof launch>, ready: RegExp) {
  const [, url] = await launched.said(ready);
  return {
    ...launched,
    /** Address of its API, without a slash at the end. */
    url: url!,
    /** Ends it, by default as Ctrl-C does, and waits until it is gone. */
    stop(signal: NodeJS.Signals = 'SIGINT') {
      launched.signal(signal);
      return launched.ended;
    },
  };
}

/** Starts `servegym` with these arguments. */
export const startServegym = (...args: string[]) => launch(NOTHING_KEPT, ...args);

/** Runs `servegym` with these arguments until it ends. */
export const runServegym = (...args: string[]) => runServegymWith(NOTHING_KEPT, ...args);

/** Runs `servegym` with these variables in its environment; `undefined` takes one away. */
export const runServegymWith = (variables: Variables, ...args: string[]) => launch(variables, ...args).ended;

function launch(variables: Variables, ...args: string[]) {
  const child = spawn(process.execPath, [main, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...variables },
  });
  const told = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const)
    child[stream].on('data', (chunk) => {
      told[stream] += chunk;
    });
  const ended = once(child, 'close').then(([code, signal]) => ({
    ...{ code: code as number | null, signal: signal as NodeJS.Signals | null },
    ...told,
  }));
  const wait = async (stream: 'stdout' | 'stderr', pattern: RegExp): Promise<RegExpExecArray> => {
    for (;;) {
      const match = pattern.exec(told[stream]);
      if (match) return match;
      const ending = await Promise.race([once(child[stream], 'data'), ended]);
      if (!Array.isArray(ending))
        throw new Error(
          `\`servegym ${args.join(' ')}\` ended with ${ending.signal ?? `exit code ${ending.code}`} and never said ${pattern}:\n${ending.stderr}`,
        );
    }
  };
  return {
    pid: child.pid!,
    /** Resolves when it is gone, with its end and its output. */
    ended,
    /** Waits until it has written to its standard output what this matches. Throws when it ends without. */
    said: (pattern: RegExp) => wait('stdout', pattern),
    /** The same of its standard error. */
    noted: (pattern: RegExp) => wait('stderr', pattern),
    /** Sends it a signal, and waits for nothing. */
    signal: (signal: NodeJS.Signals) => void child.kill(signal),
  };
}
