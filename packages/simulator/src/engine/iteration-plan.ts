import { MAX_SPECULATION_DEPTH } from './engine-config.ts';
import { SlotBuffer } from './slot-buffer.ts';

/** Tokens scheduled in one iteration besides the decodes. One object, reused. */
export class IterationPlan {
  prefillTokens = 0;
  /** Slots beyond the last token of prefills of one token, which are padded to the length of a verify step. */
  padding = 0;
  /** Whether running requests are in the iteration, and whether one of them goes on with its prefill. */
  hasRunning = false;
  hasPrefill = false;
  /** Whether decodes wait for prefills that come first. */
  isPrefillOnly = false;
  /** Prompt tokens whose KV is loaded from the host. */
  loadedTokens = 0;
  /** Sum over prefill chunks of chunk * (start + chunk / 2). */
  attention = 0;
  /** Prefills that end with this iteration. */
  readonly finishing = new SlotBuffer();
  /** Transferred requests that decode here for the first time. */
  readonly joining = new SlotBuffer();
  /** Most tokens that a request gets (vLLM long_prefill_token_threshold). */
  mostTokens = 0;
  /** Tokens that the incomplete prefill computes. */
  partialChunk = 0;
  /** Sequences that emit n tokens in a verify step: entry n. */
  readonly emittedCounts = new Float64Array(MAX_SPECULATION_DEPTH + 2);

  /** @param mostTokens Most tokens that a request gets (vLLM long_prefill_token_threshold). */
  reset(mostTokens: number): void {
    this.mostTokens = mostTokens;
    this.prefillTokens = 0;
    this.padding = 0;
    this.loadedTokens = 0;
    this.hasRunning = false;
    this.hasPrefill = false;
    this.attention = 0;
    this.finishing.count = 0;
    this.joining.count = 0;
    this.partialChunk = 0;
  }
}
