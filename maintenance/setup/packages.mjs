import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { announced, projectEnvironment, root, runQuietly } from './commands.mjs';

/** Installs the npm packages of the lock file, unless they are there. */
export async function ensurePackages() {
  if (packagesAreCurrent()) return;
  await announced('Installing npm packages', () =>
    runQuietly('npm', ['ci', '--include=dev', '--include=optional', '--loglevel=error', '--no-progress'], {
      cwd: root,
    }),
  );
}

/** The installed packages are those of the lock file. Optional packages may be absent. */
function packagesAreCurrent() {
  const installed = lockedPackages(join(root, 'node_modules', '.package-lock.json'));
  const wanted = lockedPackages(join(root, 'package-lock.json'));
  if (!installed || !wanted) return false;
  for (const [path, entry] of Object.entries(wanted)) {
    if (path !== '' && !installed[path] && !entry.optional) return false;
  }
  return Object.entries(installed).every(([path, entry]) => {
    const want = wanted[path];
    return want?.version === entry.version && want?.integrity === entry.integrity;
  });
}

function lockedPackages(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8')).packages;
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}

const folder = join(root, 'packages', 'console');
const stamp = join(folder, 'dist', '.sources');

/** Builds the web console, unless its build is of the sources as they are. */
export async function ensureConsole() {
  const sources = hashOfSources();
  if (existsSync(join(folder, 'dist', 'index.html')) && existsSync(stamp)) {
    if (readFileSync(stamp, 'utf8') === sources) return;
  }
  await announced('Building the console', async () => {
    await runQuietly('npm', ['run', 'build', '--silent'], { cwd: folder, env: projectEnvironment() });
    writeFileSync(stamp, sources);
  });
}

/** Folders that the build does not read: its own output, and the tests, which write hidden folders beside them. */
const UNREAD = /^(\.|dist$|node_modules$|browser$)/;

/** Changes with every file that the build may read: the console's own and the versions of its dependencies. */
function hashOfSources() {
  const hash = createHash('sha256').update(readFileSync(join(root, 'package-lock.json')));
  for (const path of filesUnder(folder).sort()) {
    hash.update(relative(root, path).split(sep).join('/')).update('\0').update(readFileSync(path));
  }
  return hash.digest('hex');
}

function filesUnder(directory) {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    if (UNREAD.test(entry.name)) return [];
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return filesUnder(path);
    return entry.isFile() ? [path] : [];
  });
}
