// `npm test [path ...]`: sets up what is missing, then checks style, types and what nothing uses, and runs the tests; with paths, only
// the tests under them. `npm run test:release [path ...]` packs the packages once, and runs the tests of what is published.
// The last line is `N passed, N failed`, and the exit code is 0 when nothing failed.
import { fork } from 'node:child_process';
import { join } from 'node:path';
import { explain, projectEnvironment, root, runQuietly, secondsSince } from './setup/commands.mjs';
import { ensureNode } from './setup/node.mjs';
import { ensureBuilt, ensurePackages } from './setup/packages.mjs';
import { ensureChromium, ensurePython, ensureRedis } from './setup/programs.mjs';

const startedAt = performance.now();
const [release, ...named] = process.argv.slice(2);
const isRelease = release === '--release';
const paths = isRelease ? named : process.argv.slice(2);
if (isRelease && paths.length === 0) paths.push(join('maintenance', 'release-tests'));
const counts = { passed: 0, failed: 0 };

/** Runs one thing that can fail; a failure is told and counted, and gives `undefined`. */
async function attempt(what, work) {
  try {
    return await work();
  } catch (error) {
    counts.failed++;
    console.log(`✗ ${what}\n${explain(error)}`);
    return undefined;
  }
}

async function check(name, command, args) {
  const checkStartedAt = performance.now();
  await attempt(name, async () => {
    await runQuietly(command, args, { cwd: root, env: projectEnvironment() });
    counts.passed++;
    console.log(`✓ ${name}  ${secondsSince(checkStartedAt)}`);
  });
}

async function setUpPackages() {
  await ensurePackages();
  const node = await ensureNode();
  await attempt('build for browsers', () => ensureBuilt('console', 'element'));
  return node;
}

function runTests(node, environment) {
  return new Promise((resolve, reject) => {
    const runner = fork(join(root, 'maintenance', 'run-tests.ts'), paths, {
      cwd: root,
      execPath: node,
      env: projectEnvironment(environment),
    });
    let result;
    runner.on('message', (message) => {
      result = message;
    });
    runner.on('error', reject);
    runner.on('exit', (code, signal) => {
      if (result) resolve(result);
      else reject(new Error(`The test runner ended with ${signal ?? `exit code ${code}`} and no result`));
    });
  });
}

const [node, python, chromium, redis] = await Promise.all([
  attempt('set-up of the packages', setUpPackages),
  attempt('set-up of Python', ensurePython),
  attempt('set-up of Chromium', ensureChromium),
  attempt('set-up of Redis', ensureRedis),
]);
if (node) {
  if (paths.length === 0) {
    await Promise.all([
      check('biome', 'biome', ['check', '--colors=off', '.']),
      check('tsc', 'tsc', ['-p', 'tsconfig.json']),
      check('knip', 'knip', ['--no-progress', '--no-config-hints']),
    ]);
  }
  // The servers under test write nothing into a person's folders.
  const environment = { SERVEGYM_STORE: 'memory', PYTHONPATH: join(root, 'maintenance', 'setup', 'python') };
  if (python) environment.SERVEGYM_PYTHON = python;
  if (chromium) environment.SERVEGYM_CHROMIUM = chromium;
  if (redis) environment.SERVEGYM_REDIS = redis;
  if (isRelease) {
    await check('npm run build', 'npm', ['run', 'build', '--silent']);
    environment.SERVEGYM_PACKED = join(root, 'dist', 'tarballs');
  }
  const tests = await attempt('test runner', () => runTests(node, environment));
  if (tests) {
    counts.passed += tests.passed;
    counts.failed += tests.failed;
  }
}
if (paths.length === 0)
  console.log(
    '\nNot run: the tests of the packages, the wheel, the site and the servers. `npm run test:release`',
  );
console.log(`\nTook ${secondsSince(startedAt)}`);
console.log(`${counts.passed} passed, ${counts.failed} failed`);
process.exitCode = counts.failed === 0 ? 0 : 1;
