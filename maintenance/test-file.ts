import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join, relative } from 'node:path';

/** Outcome of one test file, complete when the file has ended. */
export interface FileResult {
  readonly name: string;
  passed: number;
  readonly failures: string[];
  /** Standard output and error of the file. */
  output: string;
  seconds: number;
  /** Processor time of the file and of the processes it has waited for. */
  processorSeconds: number;
  /** Titles of the tests that have begun and not ended. */
  readonly running: Set<string>;
}

/** An event of test-reporter.mjs. */
interface TestEvent {
  readonly begins?: string;
  readonly ends?: string;
  readonly passed?: 1;
  readonly failure?: string;
  /** All tests of the file have ended, after so much processor time. */
  readonly processorSeconds?: number;
}

const REPORTER = join(import.meta.dirname, 'test-reporter.mjs');

/**
 * Starts a test file, which leads a process group of its own: whatever of the group is left when the file ends, or when
 * it takes too long, is killed.
 */
export function startTestFile(
  path: string,
  limitSeconds: number,
): { readonly result: FileResult; readonly ended: Promise<FileResult>; kill(): void } {
  const name = relative(process.cwd(), path);
  const result: FileResult = {
    name,
    passed: 0,
    failures: [],
    output: '',
    seconds: 0,
    processorSeconds: 0,
    running: new Set(),
  };
  const startedAt = performance.now();
  // With this variable Node takes the file for one that `node --test` has started, and reports to it alone.
  const { NODE_TEST_CONTEXT, ...env } = process.env;
  const file = fork(path, { detached: true, silent: true, env, execArgv: [`--test-reporter=${REPORTER}`] });
  const kill = () => killGroup(file.pid!);
  let isLate = false;
  let isWhole = false;
  file.on('message', (event: TestEvent) => {
    result.passed += event.passed ?? 0;
    if (event.begins !== undefined) result.running.add(event.begins);
    if (event.ends !== undefined) result.running.delete(event.ends);
    if (event.failure !== undefined) result.failures.push(event.failure);
    if (event.processorSeconds === undefined) return;
    isWhole = true;
    result.processorSeconds = event.processorSeconds;
  });
  for (const stream of [file.stdout!, file.stderr!])
    stream.setEncoding('utf8').on('data', (text: string) => {
      result.output += text;
    });
  const limit = setTimeout(() => {
    isLate = true;
    kill();
  }, limitSeconds * 1000);
  file.once('exit', () => {
    clearTimeout(limit);
    kill();
  });
  const ended = once(file, 'close').then(([code, signal]) => {
    result.seconds = (performance.now() - startedAt) / 1000;
    const { failures, running } = result;
    if (isLate) failures.push(`${name} takes longer than ${limitSeconds} s`);
    else if (signal) failures.push(`${name} ended with ${signal}`);
    else if (failures.length === 0 && code !== 0) failures.push(`${name} ended with exit code ${code}`);
    else if (failures.length === 0 && !isWhole)
      failures.push(`${name} ended before its tests did, or has none`);
    if (isLate || signal) failures.push(...[...running].map((test) => `${test} did not end`));
    return result;
  });
  return { result, ended, kill };
}

function killGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
