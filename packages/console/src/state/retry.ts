/** Waits so long, or until woken. */
export type Sleep = (milliseconds: number, woken: Promise<void>) => Promise<void>;

const FIRST_MS = 400;
const LONGEST_MS = 8000;

/** How long to wait before the attempt with this index, from 0: doubling, up to eight seconds. */
export function retryDelayMs(attempt: number): number {
  return Math.min(LONGEST_MS, FIRST_MS * 2 ** attempt);
}

export const sleepUntilWoken: Sleep = (milliseconds, woken) =>
  Promise.race([woken, new Promise<void>((resolve) => setTimeout(resolve, milliseconds))]);
