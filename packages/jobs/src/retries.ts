/** How often a job is tried before it counts as failed. */
export const MOST_ATTEMPTS = 3;

const FIRST_DELAY_MS = 200;

/** Time to wait after the given attempt (counted from 1), which doubles from one to the next, ms. */
export function attemptDelayMs(attempt: number): number {
  return FIRST_DELAY_MS * 2 ** (attempt - 1);
}
