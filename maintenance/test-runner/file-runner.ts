import { type ChildProcess, fork } from 'node:child_process';
import { join, relative } from 'node:path';
import { FileResult } from './file-result.ts';
import type { WorkerMessage } from './worker-message.ts';

/**
 * Runs test files one after the other in a worker, which leads a process group of its own: a file that hangs is killed
 * with all that it has started, and the next file gets a fresh worker.
 */
export class FileRunner {
  readonly #limitSeconds: number;
  #worker: ChildProcess | undefined;
  #current: FileResult | undefined;

  /** @param limitSeconds how long a file may take */
  constructor(limitSeconds: number) {
    this.#limitSeconds = limitSeconds;
  }

  /** What is known so far of the file that runs, or of the last one. */
  get current(): FileResult | undefined {
    return this.#current;
  }

  /** What came of the file; never rejects for what the file does. */
  async run(path: string): Promise<FileResult> {
    const result = new FileResult(relative(process.cwd(), path));
    this.#current = result;
    const startedAt = performance.now();
    this.#worker ??= startWorker();
    if (await this.#follow(this.#worker, path, result)) result.close();
    else this.#worker = undefined;
    result.seconds = (performance.now() - startedAt) / 1000;
    return result;
  }

  /** Lets go of the worker, which ends with all that its files have left running. */
  close(): void {
    this.#worker?.disconnect();
    this.#worker = undefined;
  }

  /** Resolves to whether the file ended by itself, so that its worker can take another one. */
  #follow(worker: ChildProcess, path: string, result: FileResult): Promise<boolean> {
    return new Promise((resolve) => {
      const limit = setTimeout(
        () => end(`takes longer than ${this.#limitSeconds} s`),
        this.#limitSeconds * 1000,
      );
      const onMessage = (message: WorkerMessage) => {
        if (message.type === 'done') end();
        else result.add(message);
      };
      const onExit = (code: number | null, signal: NodeJS.Signals | null) =>
        end(`ended its runner with ${signal ?? `exit code ${code}`}`);
      const end = (trouble?: string) => {
        clearTimeout(limit);
        worker.off('message', onMessage).off('exit', onExit);
        if (trouble !== undefined) {
          result.abort(trouble);
          killGroup(worker.pid!);
        }
        resolve(trouble === undefined);
      };
      worker.on('message', onMessage).on('exit', onExit);
      worker.send({ path });
    });
  }
}

function startWorker(): ChildProcess {
  // Node would take this variable for a sign that it runs a test file already, and run none.
  const { NODE_TEST_CONTEXT, ...env } = process.env;
  return fork(join(import.meta.dirname, 'worker.mjs'), { detached: true, env });
}

function killGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
