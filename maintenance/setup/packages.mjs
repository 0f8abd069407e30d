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

/** Packages that are built for browsers, with others whose sources they bundle. */
const BUILT = {
  console: ['operators'],
  element: ['agents', 'environments', 'openenv', 'operators', 'profiles', 'simulator'],
};

/** Builds packages for browsers, unless their builds are of the sources as they are. */
export async function ensureBuilt(...names) {
  for (const name of names) {
    const folder = join(root, 'packages', name);
    const stamp = join(folder, 'dist', '.sources');
    const sources = hashOfSources([name, ...BUILT[name]].map((each) => join(root, 'packages', each)));
    if (existsSync(stamp) && readFileSync(stamp, 'utf8') === sources) continue;
    await announced(`Building the ${name}`, async () => {
      await runQuietly('npm', ['run', 'build', '--silent'], { cwd: folder, env: projectEnvironment() });
      writeFileSync(stamp, sources);
    });
  }
}

/** Folders that the build does not read: its own output, and the tests, which write hidden folders beside them. */
const UNREAD = /^(\.|dist$|node_modules$|browser$)/;

/** Changes with every file that a build may read: those of the packages and the versions of their dependencies. */
function hashOfSources(folders) {
  const hash = createHash('sha256').update(readFileSync(join(root, 'package-lock.json')));
  for (const path of folders.flatMap(filesUnder).sort()) {
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
