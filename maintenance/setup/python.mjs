import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './checkout.mjs';
import { announced, CommandError, runQuietly } from './commands.mjs';
import { findProgram, installDebianPackages } from './programs.mjs';

const venv = join(root, '.venv');
const venvPython = join(venv, 'bin', 'python');
const requirements = join(root, 'maintenance', 'requirements.txt');
const stamp = join(venv, '.requirements');

/** The path of a Python that has the packages of `requirements.txt`, in a virtual environment of the checkout's own. */
export async function ensurePython() {
  const wanted = createHash('sha256').update(readFileSync(requirements)).digest('hex');
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
    await runQuietly(venvPython, [
      '-m',
      'pip',
      'install',
      '--quiet',
      '--disable-pip-version-check',
      '-r',
      requirements,
    ]);
    writeFileSync(stamp, wanted);
  });
  return venvPython;
}

async function createVenv(python) {
  try {
    await runQuietly(python, ['-m', 'venv', venv]);
  } catch (error) {
    // Debian keeps the part of Python that a virtual environment needs in a package of its own.
    if (!(error instanceof CommandError) || !error.output.includes('ensurepip')) throw error;
    await installDebianPackages(['python3-venv']);
    await runQuietly(python, ['-m', 'venv', '--clear', venv]);
  }
}
