/** What one iteration has scheduled besides the decodes. One object, reused. */
export class IterationPlan {
  prefillTokens = 0;
  /** Sum over prefill chunks of chunk * (start + chunk / 2). */
  attention = 0;
  /** Prefills that end with this iteration. */
  readonly finishing: number[] = [];
  /** Transferred requests that decode here for the first time. */
  readonly joining: number[] = [];
  /** Decoding requests that this iteration could not schedule. */
  readonly stalled: number[] = [];
  partialStalled = false;

  reset(): void {
    this.prefillTokens = 0;
    this.attention = 0;
    this.finishing.length = 0;
    this.joining.length = 0;
    this.stalled.length = 0;
    this.partialStalled = false;
  }
}
