import type { SessionStore } from '@servegym/openenv';
import { InputError } from '../input-error.ts';
import { openSessionFile } from './session-file.ts';

/** Whether sessions are kept in Redis, by the address, and not in a file. */
export function isRedisAddress(fileOrAddress: string): boolean {
  return /^rediss?:\/\//.test(fileOrAddress);
}

/** Opens where sessions are kept: a SQLite file, or Redis by its address. @throws InputError when it cannot be used */
export async function openSessionStorage(fileOrAddress: string): Promise<SessionStore> {
  if (!isRedisAddress(fileOrAddress)) return openSessionFile(fileOrAddress);
  const { openRedisStore } = await import('@servegym/openenv/redis');
  try {
    return await openRedisStore(fileOrAddress);
  } catch (error) {
    throw new InputError(
      `Sessions cannot be kept in Redis: ${(error as Error).message}. Start Redis there, or correct --store or SERVEGYM_STORE`,
      { cause: error },
    );
  }
}
