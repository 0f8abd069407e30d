import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const main = fileURLToPath(new URL('../packages/servegym/src/main.ts', import.meta.url));

/** A server in a process of its own, so that it shares no event loop with the load. */
export interface MeasuredServer {
  /** Without a slash at the end. */
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

/**
 * Starts `servegym serve` on a free port and waits until it is ready. `SERVEGYM_STORE` says where sessions are kept;
 * without it they are not.
 */
export async function serve(...args: string[]): Promise<MeasuredServer> {
  const address = ['--port', '0', '--host', '127.0.0.1'];
  const server = spawn(process.execPath, [main, 'serve', ...address, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { SERVEGYM_STORE: 'memory', ...process.env },
  });
  const end = () => server.kill('SIGKILL');
  process.once('exit', end);
  server.once('exit', () => process.off('exit', end));
  const ended = once(server, 'exit');
  const [line] = await Promise.race([
    once(server.stdout.setEncoding('utf8'), 'data'),
    ended.then(([code]) => {
      throw new Error(`servegym serve ended with exit code ${code}`);
    }),
  ]);
  const url = /http:\S+(?=\/web\/)/.exec(line)?.[0];
  if (!url) throw new Error(`servegym serve said \`${line}\` where an address was expected`);
  return {
    url,
    pid: server.pid!,
    async stop() {
      server.kill();
      await ended;
    },
  };
}
