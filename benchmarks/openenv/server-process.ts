import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** A server in a process of its own. */
export interface ServerProcess {
  /** Without a slash at the end. */
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

/** Starts a program of this folder that prints its URL as its first line. */
export async function startServer(command: string, file: string, ...args: string[]): Promise<ServerProcess> {
  const child = spawn(command, [join(import.meta.dirname, file), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  const failed = ended.then(([code]) => {
    throw new Error(`${file} ended with exit code ${code} before it listened`);
  });
  const [url] = (await Promise.race([once(createInterface({ input: child.stdout }), 'line'), failed])) as [
    string,
  ];
  failed.catch(() => {});
  return {
    url,
    pid: child.pid!,
    async stop() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
