import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';

/** A server in a process of its own, with its data in a folder of its own. */
export interface ServerProcess {
  readonly url: string;
  /** Id of the process. */
  readonly pid: number;
  /** Ends it and starts it again, with the data that it has kept. */
  restart(): Promise<void>;
  /** Ends it and removes its data. */
  stop(): Promise<void>;
}

/** Program, arguments and folder of a server. */
export interface ServerStart {
  readonly url: string;
  readonly folder: string;
  readonly program: string;
  readonly args: readonly string[];
  /** Text that it prints when it takes connections. */
  readonly ready: string;
}

export async function startServerProcess(start: ServerStart): Promise<ServerProcess> {
  let server = await launch(start);
  const end = async () => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    server.kill('SIGINT');
    await once(server, 'exit');
  };
  return {
    url: start.url,
    get pid() {
      return server.pid!;
    },
    async restart() {
      await end();
      server = await launch(start);
    },
    async stop() {
      await end();
      rmSync(start.folder, { recursive: true, force: true });
    },
  };
}

async function launch({ program, args, folder, ready }: ServerStart): Promise<ChildProcess> {
  const child = spawn(program, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  await new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        said += chunk;
        if (said.includes(ready)) resolve();
      });
    }
    child.once('error', reject);
    child.once('exit', () => reject(new Error(`${program} ended:\n${said}`)));
  });
  return child;
}
