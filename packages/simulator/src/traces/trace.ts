/**
 * A request trace, one entry a request, in order of arrival. Structure of arrays: entry i is
 * (`arrivalMs[i]`, `inputTokens[i]`, `outputTokens[i]`).
 */
export interface Trace {
  /** Source, for messages. */
  readonly source: string;
  /** ms after the first arrival; never decreasing; the first is 0. */
  readonly arrivalMs: Float64Array;
  /** Prompt tokens, >= 1. */
  readonly inputTokens: Int32Array;
  /** Generated tokens, >= 1. */
  readonly outputTokens: Int32Array;
  /** Prefix block hashes, when the trace has them: those of request i are `ids[offsets[i]] .. ids[offsets[i + 1] - 1]`. */
  readonly prefixBlocks?: {
    readonly blockTokens: number;
    /** Whether hashes behind the prompt's stand for the answer, as a later prompt repeats it. Default false. */
    readonly namesAnswers?: boolean;
    readonly ids: Float64Array;
    readonly offsets: Int32Array;
  };
  /**
   * Conversations, when the trace has them: request i follows the answer to request `previous[i]`, which stands before
   * it, `thinkMs[i]` after its last token; -1 for the first request of a conversation. `arrivalMs` of a follow-up is
   * its recorded arrival, and tells nothing else than the order.
   */
  readonly followUps?: {
    readonly previous: Int32Array;
    readonly thinkMs: Float64Array;
  };
}
