// Runs every `*.test.ts` (or those under the paths given) on the project's Node: a line for each file, and each failure
// in full at the end. Sends `{ passed, failed }` to the process that started it. A test that is skipped or to do counts
// as failed, and so does a file that ends before its tests do, or hangs. `node --test` leaves running what a file has
// started, counts a skipped test as passed, and does not tell the processor time of a file.
import { existsSync, globSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, resolve } from 'node:path';
import { startTestFile } from './test-file.ts';

/** Tests of what is packed and published. `npm run test:release` runs them; without it, only who names them. */
const RELEASE = resolve('maintenance/release-tests');
/** The folders that have tests. */
const ROOTS = ['packages', 'clients', 'deploy', 'notebooks', 'maintenance', 'benchmarks'];
/** A file that takes longer hangs: ten times what the longest takes on two cores. */
const FILE_SECONDS = 1800;

const files = testFiles(process.argv.slice(2));
const results = [];
const running = new Set();

// It ends with the process that started it, and its files with it, but it does not wait for the end of that process.
for (const end of ['disconnect', 'SIGINT', 'SIGTERM', 'SIGHUP'])
  process.on(end, () => {
    for (const file of running) file.kill();
    process.exit(1);
  });
process.channel?.unref();
const queue = files.values();
await Promise.all(Array.from({ length: Math.min(availableParallelism(), files.length) }, runFiles));

for (const { name, failures, output } of results.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
  for (const failure of failures) console.log(`\n✗ ${failure}`);
  if (failures.length > 0 && output)
    console.log(`\n  ${name} wrote:\n${output.trimEnd().replace(/^/gm, '    ')}`);
}
const sum = (count) => results.reduce((total, result) => total + count(result), 0);
const counts = { passed: sum(({ passed }) => passed), failed: sum(({ failures }) => failures.length) };
console.log(`\nProcessor time of the tests: ${sum((result) => result.processorSeconds).toFixed(0)} s`);
process.exitCode = counts.failed === 0 ? 0 : 1;
process.send?.(counts);

async function runFiles() {
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
}

function testFiles(paths) {
  const wanted = paths.length > 0 ? paths : ROOTS.filter((path) => existsSync(path));
  const patterns = wanted.map((path) => {
    if (!existsSync(path)) throw new Error(`There is no \`${path}\` to test`);
    return statSync(path).isDirectory() ? `${path}/**/*.test.ts` : path;
  });
  const exclude = (path) => /(^|[\\/])(node_modules|dist)([\\/]|$)/.test(path);
  const found = new Set(globSync(patterns, { exclude }).map((path) => resolve(path)));
  if (paths.length === 0) for (const path of found) if (dirname(path) === RELEASE) found.delete(path);
  if (found.size === 0) throw new Error(`There is no *.test.ts under ${wanted.join(', ')}`);
  return [...found].sort();
}
