import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const main = join(import.meta.dirname, '..', 'src', 'main.ts');

/** A `servegym endpoint` in a process of its own. */
export interface EndpointProcess {
  /** Without a slash at the end; the API is below `/v1`. */
  readonly url: string;
  /** Of the replicas behind the first. */
  readonly others: readonly string[];
  /** Sends SIGTERM and waits until it is gone. Answers its exit code. */
  stop(): Promise<number | null>;
}

/** Starts `servegym endpoint` on a free port of this machine and waits until it says that it is ready. */
export async function startEndpointProcess(...args: string[]): Promise<EndpointProcess> {
  const child = spawn(process.execPath, [main, 'endpoint', '--port', '0', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = once(child, 'close');
  let said = '';
  let complained = '';
  child.stdout.on('data', (data) => {
    said += data;
  });
  child.stderr.on('data', (data) => {
    complained += data;
  });
  let url: string | undefined;
  while (url === undefined) {
    const isOver = await Promise.race([once(child.stdout, 'data').then(() => false), ended.then(() => true)]);
    url = /^The endpoint is ready: (\S+)\/v1 /m.exec(said)?.[1];
    if (isOver && url === undefined)
      throw new Error(`The endpoint ended before it was ready:\n${complained}`);
  }
  return {
    url,
    others: Array.from(said.matchAll(/^Replica \d+: (\S+)\/v1$/gm), ([, other]) => other),
    async stop() {
      child.kill('SIGTERM');
      const [code] = await ended;
      return code;
    },
  };
}
