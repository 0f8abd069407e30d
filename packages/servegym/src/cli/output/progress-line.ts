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
