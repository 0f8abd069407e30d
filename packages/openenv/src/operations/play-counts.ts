/** What has been played since a server was made. */
export class PlayCounts {
  steps = 0;
  resets = 0;
  /** WebSocket messages that were answered with an error, by its code. */
  readonly errors = new Map<string, number>();

  countError(code: string): void {
    this.errors.set(code, (this.errors.get(code) ?? 0) + 1);
  }
}
