import { InterruptedError } from '../failure.ts';

/**
 * Shows how far something is, on standard error, in the place of what was shown before; the empty line takes it away.
 * Where standard error is no terminal, nothing is shown.
 */
export function showProgress(line: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${line}`);
}

/**
 * Waits for work that shows its progress, and takes that away.
 * @param soFar Text to print when the work is interrupted; `undefined` for none.
 */
export async function untilDone<Result>(
  work: Promise<Result>,
  soFar: () => string | undefined,
): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    const text = error instanceof InterruptedError ? soFar() : undefined;
    showProgress('');
    if (text !== undefined) console.log(text);
    throw error;
  } finally {
    showProgress('');
  }
}

/** Shows which share of the episodes is played, in tenths of a percent: planners take long; once they all are, nothing. */
export function showShare(share: number): void {
  showProgress(share < 1 ? `played ${(100 * share).toFixed(1)} %` : '');
}

/** Lines that are written in all where they cannot be drawn over each other. */
const LINES = 20;

/** Shows on standard error how far something is: one line drawn over and over in a terminal, a few lines elsewhere. */
export class ProgressDisplay {
  #lines = 0;
  #isShown = false;

  /** `share` of the work that is done; at most 1. */
  show(line: string, share: number): void {
    this.#isShown = true;
    if (process.stderr.isTTY) {
      showProgress(line);
    } else if (share * LINES >= this.#lines) {
      console.error(line);
      this.#lines = Math.floor(share * LINES) + 1;
    }
  }

  end(): void {
    if (this.#isShown && process.stderr.isTTY) process.stderr.write('\n');
    this.#isShown = false;
  }
}
