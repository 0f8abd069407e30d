/**
 * Shows how far something is, on standard error, in the place of what was shown before; the empty line takes it away.
 * Where standard error is no terminal, nothing is shown.
 */
export function showProgress(line: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${line}`);
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
  }
}
