import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './checkout.mjs';
import { announced, runQuietly } from './commands.mjs';

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
