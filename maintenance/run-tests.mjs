// Runs every `*.test.ts` (or those under the paths given) on the project's Node, says a line for each file and tells
// each failure in full at the end. Sends `{ passed, failed }` to the process that started it. A test that is skipped
// or to do counts as failed, and so does a file that ends before its tests do, or takes longer than `--file-seconds`
// (240): it is killed with all that it has started.
import { existsSync, globSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { FileRunner } from './test-runner/file-runner.ts';

/** The folders that have tests. */
const ROOTS = ['packages', 'clients', 'deploy', 'notebooks', 'maintenance', 'benchmarks'];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { 'file-seconds': { type: 'string', default: '240' } },
});
const fileSeconds = Number(values['file-seconds']);
if (!(fileSeconds > 0)) {
  throw new Error(
    `Expected a number of seconds above 0 for --file-seconds, got \`${values['file-seconds']}\``,
  );
}
const files = testFiles(positionals);
const queue = [...files];
const results = [];

// It ends with the process that started it, but does not wait for its end.
process.on('disconnect', () => process.exit(1));
process.channel?.unref();
await Promise.all(Array.from({ length: Math.min(availableParallelism(), files.length) }, runFiles));

let passed = 0;
let failed = 0;
for (const result of results.sort((a, b) => (a.name < b.name ? -1 : 1))) {
  if (result.failed > 0) tellFailures(result);
  passed += result.passed;
  failed += result.failed;
}
process.exitCode = failed === 0 ? 0 : 1;
process.send?.({ passed, failed });

async function runFiles() {
  const runner = new FileRunner(fileSeconds);
  for (let path = queue.shift(); path !== undefined; path = queue.shift()) {
    const result = await runner.run(path);
    results.push(result);
    sayFile(result);
  }
  runner.close();
}

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

function sayFile({ name, passed, failed, seconds }) {
  const took = `${seconds.toFixed(1)} s`;
  console.log(failed === 0 ? `✓ ${name}  ${passed} tests  ${took}` : `✗ ${name}  ${failed} failed  ${took}`);
}

function tellFailures({ name, failures, output }) {
  for (const { title, error } of failures) {
    console.log(`\n✗ ${title}`);
    if (error !== undefined) console.log(error.replace(/^/gm, '    '));
  }
  if (output) console.log(`\n  ${name} wrote:\n${output.trimEnd().replace(/^/gm, '    ')}`);
}
