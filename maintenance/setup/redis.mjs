import { installDebianPackages } from './debian.mjs';
import { findProgram, isExecutable } from './programs.mjs';

/** The path of a Redis server; installed from Debian's packages when there is none. `SERVEGYM_REDIS` overrides it. */
export async function ensureRedis() {
  const chosen = process.env.SERVEGYM_REDIS;
  if (chosen) {
    if (isExecutable(chosen)) return chosen;
    throw new Error(`SERVEGYM_REDIS is \`${chosen}\`, which is not a program. Correct it, or unset it.`);
  }
  const found = findProgram('redis-server', 'valkey-server');
  if (found) return found;
  await installDebianPackages(['redis-server']);
  const installed = findProgram('redis-server');
  if (!installed) throw new Error('redis-server was installed, but no program of that name is on PATH.');
  return installed;
}
