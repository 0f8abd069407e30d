// Runs every `*.test.ts` (or those under the paths given) on the project's Node, says a line for each file and tells
// each failure in full at the end. Sends `{ passed, failed }` to the process that started it. A test that is skipped
// or to do counts as failed, and so does a file that ends before its tests do.
import { existsSync, globSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { relative, resolve } from 'node:path';
import { run } from 'node:test';
import { inspect } from 'node:util';

/** A file that takes longer than this hangs. */
const FILE_TIMEOUT_MS = 240_000;
/** The folders that have tests. */
const ROOTS = ['packages', 'clients', 'deploy', 'notebooks', 'workshop', 'benchmarks'];

class FileResult {
  name;
  passed = 0;
  /** What went wrong, each with a title and, where there is one, the error. */
  failures = [];
  /** Tests that failed only because a test inside them did. */
  failedParents = 0;
  output = '';
  /** Whether the file ran to its end. */
  isWhole = false;

  constructor(path) {
    this.name = relative(process.cwd(), path);
  }

  get failed() {
    return this.failures.length + this.failedParents;
  }

  addTest({ name, line, column, skip, todo, details: { passed, error, type } }) {
    const isSuite = type === 'suite';
    const title = `${name}  (${this.name}:${line}:${column})`;
    if (skip !== undefined || todo !== undefined)
      this.failures.push({ title: `${title} is skipped or to do` });
    else if (passed) this.passed += isSuite ? 0 : 1;
    else if (error?.failureType === 'cancelledByParent')
      this.failures.push({ title: `${title} was cancelled` });
    else if (error?.failureType !== 'subtestsFailed')
      this.failures.push({ title, error: error?.cause ?? error });
    else this.failedParents += isSuite ? 0 : 1;
  }

  addEnd({ passed, error }) {
    if (passed || error?.failureType === 'subtestsFailed') return;
    const how =
      error?.failureType === 'testTimeoutFailure'
        ? `takes longer than ${FILE_TIMEOUT_MS / 1000} s`
        : `ended with ${error?.signal ?? `exit code ${error?.exitCode}`}`;
    this.failures.push({ title: `${this.name} ${how}` });
  }
}

const files = testFiles(process.argv.slice(2));
const results = new Map(files.map((path) => [path, new FileResult(path)]));

for await (const { type, data } of run({
  files,
  concurrency: availableParallelism(),
  timeout: FILE_TIMEOUT_MS,
})) {
  const result = results.get(data.entryFile ?? data.file);
  if (!result) continue;
  if (type === 'test:stdout' || type === 'test:stderr') result.output += data.message;
  else if (type === 'test:summary') result.isWhole = true;
  else if (type === 'test:complete' && data.entryFile) result.addTest(data);
  else if (type === 'test:complete') {
    result.addEnd(data.details);
    sayFile(result, data.details.duration_ms);
  }
}

let passed = 0;
let failed = 0;
for (const result of results.values()) {
  if (!result.isWhole && result.failed === 0) {
    result.failures.push({ title: `${result.name} ended before its tests did, or has none` });
  }
  if (result.failed > 0) tellFailures(result);
  passed += result.passed;
  failed += result.failed;
}
process.exitCode = failed === 0 ? 0 : 1;
process.send?.({ passed, failed });

function testFiles(paths) {
  const wanted = paths.length > 0 ? paths : ROOTS.filter((path) => existsSync(path));
  const patterns = wanted.map((path) => {
    if (!existsSync(path)) throw new Error(`There is no \`${path}\` to test`);
    return statSync(path).isDirectory() ? `${path}/**/*.test.ts` : path;
  });
  const exclude = (path) => /(^|[\\/])(node_modules|dist)([\\/]|$)/.test(path);
  const found = new Set(globSync(patterns, { exclude }).map((path) => resolve(path)));
  if (found.size === 0) throw new Error(`There is no *.test.ts under ${wanted.join(', ')}`);
  return [...found].sort();
}

function sayFile({ name, passed, failed }, durationMs) {
  const seconds = `${(durationMs / 1000).toFixed(1)} s`;
  console.log(
    failed === 0 ? `✓ ${name}  ${passed} tests  ${seconds}` : `✗ ${name}  ${failed} failed  ${seconds}`,
  );
}

function tellFailures({ name, failures, output }) {
  for (const { title, error } of failures) {
    console.log(`\n✗ ${title}`);
    if (error !== undefined) console.log(describe(error).replace(/^/gm, '    '));
  }
  if (output) console.log(`\n  ${name} wrote:\n${output.trimEnd().replace(/^/gm, '    ')}`);
}

/** The error with its fields and without Node's own stack frames. */
function describe(error) {
  return inspect(error, { depth: 4 })
    .split('\n')
    .filter((line) => !/^\s+at .*node:/.test(line))
    .join('\n');
}
