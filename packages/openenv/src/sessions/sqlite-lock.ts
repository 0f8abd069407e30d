import { setTimeout as sleep } from 'node:timers/promises';

const SQLITE_BUSY = 5;
export const SQLITE_CORRUPT = 11;
export const SQLITE_FULL = 13;
export const SQLITE_NOT_A_DATABASE = 26;
export const LOCK_RETRY_MS = 5;

/** SQLite's code of an error, without the details in its higher bytes; 0 for other errors. */
export function primaryCode(error: unknown): number {
  return ((error as { errcode?: number }).errcode ?? 0) & 0xff;
}

/** True when another process holds the lock. */
export function isBusy(error: unknown): boolean {
  return primaryCode(error) === SQLITE_BUSY;
}

/** Why the database refused, and what to do. */
export function reasonOf(error: unknown): string {
  switch (primaryCode(error)) {
    case SQLITE_FULL:
      return 'the disk is full, or the file has reached its limit. Make room';
    case SQLITE_BUSY:
      return 'another process holds the database locked. End it, or try again';
    default:
      return (error as Error).message;
  }
}

/** Tries again while another process holds the lock, without stopping the event loop. @throws what the last try threw */
export async function retryWhileLocked<T>(timeoutMs: number, run: () => T): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    try {
      return run();
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw error;
    }
    await sleep(LOCK_RETRY_MS);
  }
}
