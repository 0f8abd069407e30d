// Runs every `*.test.ts` (or those under the paths given) on the project's Node: a line for each file, and each failure
// in full at the end. Sends `{ passed, failed }` to the process that started it. A test that is skipped or to do counts
// as failed, and so does a file that ends before its tests do, or hangs. `node --test` leaves running what a file has
// started, counts a skipped test as passed, and does not tell the processor time of a file.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';

/** Tests of what is packed and published. `npm run test:release` runs them; without it, only who names them. */
const RELEASE = join(import.meta.dirname, 'release-tests');
const ROOTS = ['packages', 'clients', 'deploy', 'notebooks', 'maintenance', 'benchmarks'];
/** A file that takes longer hangs: ten times what the longest takes on two cores. */
const FILE_SECONDS = 1800;

const REPORTER = join(import.meta.dirname, 'test-reporter.mjs');

if (import.meta.main) {
  const running = new Set<ReturnType<typeof startTestFile>>();
  // It ends with the process that started it, and its files with it, but it does not wait for the end of that process.
  for (const end of ['disconnect', 'SIGINT', 'SIGTERM', 'SIGHUP'])
    process.on(end, () => {
      for (const file of running) file.kill();
      process.exit(1);
    });
  process.channel?.unref();

  const files = testFiles(process.argv.slice(2));
  const queue = files.values();
  const results: FileResult[] = [];
  const runFiles = async () => {
    for (const path of queue) {
      const file = startTestFile(path, FILE_SECONDS);
      running.add(file);
      const result = await file.ended;
      running.delete(file);
      const { name, passed, failures, seconds, processorSeconds } = result;
      const outcome =
        failures.length === 0 ? `✓ ${name}  ${passed} tests` : `✗ ${name}  ${failures.length} failed`;
      console.log(`${outcome}  ${seconds.toFixed(1)} s, processor ${processorSeconds.toFixed(1)} s`);
      results.push(result);
    }
  };
  await Promise.all(Array.from({ length: Math.min(availableParallelism(), files.length) }, runFiles));

  for (const { name, failures, output } of results.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    for (const failure of failures) console.log(`\n✗ ${failure}`);
    if (failures.length > 0 && output)
      console.log(`\n  ${name} wrote:\n${output.trimEnd().replace(/^/gm, '    ')}`);
  }
  const sum = (count: (result: FileResult) => number) =>
    results.reduce((total, result) => total + count(result), 0);
  const counts = { passed: sum(({ passed }) => passed), failed: sum(({ failures }) => failures.length) };
  console.log(`\nProcessor time of the tests: ${sum((result) => result.processorSeconds).toFixed(0)} s`);
  process.exitCode = counts.failed === 0 ? 0 : 1;
  process.send?.(counts);
}

function testFiles(paths: readonly string[]): string[] {
  const wanted = paths.length > 0 ? paths : ROOTS.filter((path) => existsSync(path));
  const patterns = wanted.map((path) => {
    if (!existsSync(path)) throw new Error(`There is no \`${path}\` to test`);
    return statSync(path).isDirectory() ? `${path}/**/*.test.ts` : path;
  });
  const exclude = (path: string) => /(^|[\\/])(node_modules|dist)([\\/]|$)/.test(path);
  const found = new Set(globSync(patterns, { exclude }).map((path) => resolve(path)));
  if (paths.length === 0) for (const path of found) if (dirname(path) === RELEASE) found.delete(path);
  if (found.size === 0) throw new Error(`There is no *.test.ts under ${wanted.join(', ')}`);
  return [...found].sort();
}

/** Outcome of one test file, complete when the file has ended. */
type FileResult = ReturnType<typeof startTestFile>['result'];

/** An event of test-reporter.mjs. */
interface TestEvent {
  readonly begins?: string;
  readonly ends?: string;
  readonly passed?: number;
  readonly failure?: string;
  /** All tests of the file have ended, after so much processor time. */
  readonly processorSeconds?: number;
}

/**
 * Starts a test file, which leads a process group of its own: whatever of the group is left when the file ends, or when
 * it takes too long, is killed.
 */
export function startTestFile(path: string, limitSeconds: number) {
  const name = relative(process.cwd(), path);
  const result = {
    ...{ name, passed: 0, failures: [] as string[], seconds: 0 },
    /** Standard output and error of the file. */
    output: '',
    /** Processor time of the file and of the processes it has waited for. */
    processorSeconds: 0,
    /** Titles of the tests that have begun and not ended. */
    running: new Set<string>(),
  };
  const { failures, running } = result;
  const startedAt = performance.now();
  // With this variable Node takes the file for one that `node --test` has started, and reports to it alone.
  const { NODE_TEST_CONTEXT, ...env } = process.env;
  const file = fork(path, { detached: true, silent: true, env, execArgv: [`--test-reporter=${REPORTER}`] });
  const kill = () => {
    try {
      process.kill(-file.pid!, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  };
  let isLate = false;
  let isWhole = false;
  file.on('message', ({ begins, ends, passed = 0, failure, processorSeconds }: TestEvent) => {
    result.passed += passed;
    if (begins !== undefined) running.add(begins);
    if (ends !== undefined) running.delete(ends);
    if (failure !== undefined) failures.push(failure);
    if (processorSeconds === undefined) return;
    isWhole = true;
    result.processorSeconds = processorSeconds;
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
