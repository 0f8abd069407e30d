import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { promisify } from 'node:util';

const root = dirname(import.meta.dirname);

/** Most that another test file may build, ms. */
const LONGEST_BUILD_MS = 120_000;

/** Runs `npm run build` and copies the tarballs to `folder`: other test files may build at the same time. */
export async function packPackages(folder: string): Promise<string[]> {
  const cache = join(root, 'node_modules', '.cache');
  mkdirSync(cache, { recursive: true });
  // A lock between processes, which the system frees when its holder dies.
  const lock = new DatabaseSync(join(cache, 'build.lock'), { timeout: LONGEST_BUILD_MS });
  try {
    lock.exec('BEGIN EXCLUSIVE');
    await promisify(execFile)('npm', ['run', 'build', '--silent'], { cwd: root });
    cpSync(join(root, 'dist', 'tarballs'), folder, { recursive: true });
  } finally {
    lock.close();
  }
  return readdirSync(folder).map((name) => join(folder, name));
}
