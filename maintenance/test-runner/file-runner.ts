import { type ChildProcess, fork } from 'node:child_process';
import { join, relative } from 'node:path';

/** Outcome of one test file, complete when its `run` resolves. */
export interface FileResult {
  readonly name: string;
  passed: number;
  readonly failures: string[];
  /** Standard output and error of the file. */
  output: string;
  seconds: number;
  /** Titles of the tests that have begun and not ended. */
  readonly running: Set<string>;
}

/** An event of the file that a worker runs; the last one is done. */
interface WorkerMessage {
  readonly output?: string;
  readonly begins?: string;
  readonly ends?: string;
  readonly passed?: 1;
  readonly failure?: string;
  readonly isDone?: true;
  /** All tests of the file were counted. */
  readonly isWhole?: boolean;
}

/**
 * Runs test files one after the other in a worker, which leads a process group of its own: a file that hangs is killed
 * with all that it has started, and the next file gets a fresh worker.
 */
export class FileRunner {
  readonly #limitSeconds: number;
  #worker: ChildProcess | undefined;
  /** The file that runs, or the last one. */
  current: FileResult | undefined;

  /** @param limitSeconds how long a file may take */
  constructor(limitSeconds: number) {
    this.#limitSeconds = limitSeconds;
  }

  /** Never rejects for what the file does. */
  async run(path: string): Promise<FileResult> {
    const name = relative(process.cwd(), path);
    const result: FileResult = { name, passed: 0, failures: [], output: '', seconds: 0, running: new Set() };
    this.current = result;
    const startedAt = performance.now();
    this.#worker ??= startWorker();
    const trouble = await follow(this.#worker, path, result, this.#limitSeconds);
    if (trouble !== undefined) {
      killGroup(this.#worker.pid!);
      this.#worker = undefined;
      result.failures.push(`${name} ${trouble}`, ...[...result.running].map((test) => `${test} did not end`));
    }
    result.seconds = (performance.now() - startedAt) / 1000;
    return result;
  }

  /** Lets go of the worker, which ends with all that its files have left running. */
  close(): void {
    this.#worker?.disconnect();
    this.#worker = undefined;
  }
}

/** Resolves at the end of the file; to a text when its worker can run no other one. */
function follow(worker: ChildProcess, path: string, result: FileResult, limitSeconds: number) {
  return new Promise<string | undefined>((resolve) => {
    const end = (trouble?: string) => {
      clearTimeout(limit);
      worker.off('message', onMessage).off('exit', onExit);
      resolve(trouble);
    };
    const limit = setTimeout(() => end(`takes longer than ${limitSeconds} s`), limitSeconds * 1000);
    const onMessage = ({ output, begins, ends, passed, failure, isDone, isWhole }: WorkerMessage) => {
      result.output += output ?? '';
      result.passed += passed ?? 0;
      if (begins !== undefined) result.running.add(begins);
      if (ends !== undefined) result.running.delete(ends);
      if (failure !== undefined) result.failures.push(failure);
      if (!isDone) return;
      if (!isWhole && result.failures.length === 0)
        result.failures.push(`${result.name} ended before its tests did, or has none`);
      end();
    };
    const onExit = (code: number | null, signal: NodeJS.Signals | null) =>
      end(`ended its runner with ${signal ?? `exit code ${code}`}`);
    worker.on('message', onMessage).on('exit', onExit);
    worker.send(path);
  });
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
