import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const CLI = fileURLToPath(new URL('../../servegym/src/main.ts', import.meta.url));
const READY_WITHIN_MS = 60_000;

/** A `servegym serve` of its own process. */
export interface ServeProcess {
  /** `http://127.0.0.1:<port>`, without a slash. */
  readonly origin: string;
  readonly port: number;
  /** Ends the process at once, as a crash would. */
  kill(): Promise<void>;
}

export interface ServeSetup {
  /** Default 0: a free one. */
  readonly port?: number;
  /** Further arguments. */
  readonly args?: readonly string[];
  /** Where sessions are kept. Default: nowhere. */
  readonly store?: string;
  readonly token?: string;
}

/** Starts `servegym serve` and waits until it listens. */
export async function startServe({
  port = 0,
  args = [],
  store,
  token,
}: ServeSetup = {}): Promise<ServeProcess> {
  const child = spawn(
    process.execPath,
    [CLI, 'serve', '--host', '127.0.0.1', '--port', String(port), ...args],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...process.env,
        SERVEGYM_STORE: store ?? 'memory',
        ...(token !== undefined && { SERVEGYM_TOKEN: token }),
      },
    },
  );
  let output = '';
  const ready = new Promise<number>((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`servegym serve does not get ready:\n${output}`)),
      READY_WITHIN_MS,
    );
    const read = (chunk: Buffer) => {
      output += chunk;
      const address = /ready: http:\/\/[^:]+:(\d+)\/web\//.exec(output);
      if (!address) return;
      clearTimeout(timer);
      resolve(Number(address[1]));
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.once('exit', (code) => {
      clearTimeout(timer);
      reject(new Error(`servegym serve ended with exit code ${code}:\n${output}`));
    });
  });
  const listening = await ready.catch((error) => {
    child.kill('SIGKILL');
    throw error;
  });
  return {
    origin: `http://127.0.0.1:${listening}`,
    port: listening,
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}
