import { createHash } from 'node:crypto';
import { accessSync, constants, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { announced, root, runQuietly } from './commands.mjs';

/** The path of a Chromium. `SERVEGYM_CHROMIUM` overrides it. */
export function ensureChromium() {
  return ensureProgram('SERVEGYM_CHROMIUM', 'chromium', [
    ...['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'],
    '/Applications/Chromium.app/Contents/MacOS/Chromium',
    '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  ]);
}

/** The path of a Redis server. `SERVEGYM_REDIS` overrides it. */
export function ensureRedis() {
  return ensureProgram('SERVEGYM_REDIS', 'redis-server', ['redis-server', 'valkey-server']);
}

/**
 * The path of a program; installed from Debian's packages when there is none.
 *
 * @param {string} variable its path may stand in
 * @param {string} debianPackage
 * @param {string[]} names on PATH, or absolute paths
 */
async function ensureProgram(variable, debianPackage, names) {
  const chosen = process.env[variable];
  if (chosen) {
    if (isExecutable(chosen)) return chosen;
    throw new Error(`${variable} is \`${chosen}\`, which is not a program. Correct it, or unset it.`);
  }
  const found = findProgram(...names);
  if (found) return found;
  await installDebianPackages([debianPackage]);
  const installed = findProgram(...names);
  if (!installed) throw new Error(`${debianPackage} was installed, but no program of that name is on PATH.`);
  return installed;
}

/** The path of the first of `names` that PATH has, or that is the path of a program; or `undefined`. */
function findProgram(...names) {
  for (const name of names) {
    for (const directory of (process.env.PATH ?? '').split(delimiter)) {
      if (directory && isExecutable(join(directory, name))) return join(directory, name);
    }
    if (name.startsWith('/') && isExecutable(name)) return name;
  }
  return undefined;
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

// apt-get takes one lock for the whole machine, so installations queue up behind each other.
let queue = Promise.resolve();
let indexIsFresh = false;

/**
 * Installs packages of Debian (or a descendant) with apt-get, through sudo when not root.
 * Throws, saying what to install by hand, where that is not possible.
 *
 * @param {string[]} packages
 */
function installDebianPackages(packages) {
  const installation = queue.then(() => install(packages));
  queue = installation.catch(() => {});
  return installation;
}

async function install(packages) {
  const names = packages.join(' ');
  if (!findProgram('apt-get'))
    throw new Error(
      `\`${names}\` is missing, and there is no apt-get here to install it. Install it by hand.`,
    );
  const isRoot = process.getuid?.() === 0;
  if (!isRoot && !findProgram('sudo'))
    throw new Error(`\`${names}\` is missing. As root, run: apt-get install ${names}`);
  const asRoot = isRoot ? [] : process.stdin.isTTY ? ['sudo'] : ['sudo', '-n'];
  const aptGet = async (...args) => {
    const words = [...asRoot, 'env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-qq', ...args];
    await runQuietly(words[0], words.slice(1), {
      stdin: asRoot.length > 0 && process.stdin.isTTY ? 'inherit' : 'ignore',
    });
  };
  await announced(`Installing ${names} with apt-get`, async () => {
    if (!indexIsFresh) await aptGet('update');
    indexIsFresh = true;
    await aptGet('install', '-y', '--no-install-recommends', ...packages);
  });
}

const venv = join(root, '.venv');
const venvPython = join(venv, 'bin', 'python');
const requirements = join(root, 'maintenance', 'requirements.txt');
const stamp = join(venv, '.requirements');

/** The path of a Python that has the packages of `requirements.txt`, in a virtual environment of the checkout's own. */
export async function ensurePython() {
  const packages = readFileSync(requirements, 'utf8');
  const wanted = createHash('sha256').update(packages).digest('hex');
  if (existsSync(venvPython) && existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted)
    return venvPython;

  const python = findProgram('python3', 'python');
  if (!python)
    throw new Error('Python 3 is missing. Install Python 3.10 or newer; the tests drive the server from it.');
  await runQuietly(python, ['-c', 'import sys; sys.exit(sys.version_info < (3, 10))']).catch((cause) => {
    throw new Error(`${python} is too old. Install Python 3.10 or newer.`, { cause });
  });
  await announced('Installing Python packages', async () => {
    rmSync(venv, { recursive: true, force: true });
    await createVenv(python);
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
    const [uv] = /^uv==.*$/m.exec(packages);
    await runQuietly(venvPython, [...pip, uv]);
    // uv takes a tenth of the time of pip, but does not read in pip's configuration where to install from.
    const install = ['pip', 'install', '--quiet', '--python', venvPython, '-r', requirements];
    await runQuietly(join(venv, 'bin', 'uv'), install).catch(() =>
      runQuietly(venvPython, [...pip, '-r', requirements]),
    );
    writeFileSync(stamp, wanted);
  });
  return venvPython;
}

async function createVenv(python) {
  try {
    await runQuietly(python, ['-m', 'venv', venv]);
  } catch (error) {
    // Debian keeps the part of Python that a virtual environment needs in a package of its own.
    if (!error.output?.includes('ensurepip')) throw error;
    await installDebianPackages(['python3-venv']);
    await runQuietly(python, ['-m', 'venv', '--clear', venv]);
  }
}
