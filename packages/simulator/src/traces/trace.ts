import type { ReadTrace } from './request-reader.ts';

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
  /**
   * LoRA adapters that requests ask for, when the trace names them: `names[of[i] - 1]` is that of request i; 0 is the base
   * model. Equal text under another adapter has other prefix hashes.
   */
  readonly adapters?: { readonly names: readonly string[]; readonly of: Int32Array };
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

/** Meanings of a column. */
export const TRACE_COLUMNS = ['arrival', 'input', 'output', 'prefix', 'adapter'] as const;
export type TraceColumn = (typeof TRACE_COLUMNS)[number];

/** Unit of an arrival that is a plain number. */
export type TimeUnit = 's' | 'ms' | 'us' | 'ns';

/** Options for traces whose columns are ambiguous. */
export interface TraceOptions {
  /** Names of columns that are not found by their names, or of others than those that are. */
  readonly map?: Readonly<Partial<Record<TraceColumn, string>>>;
  /** Default: what the column's name or the size of the numbers says, else s (in Mooncake's JSONL ms). */
  readonly timeUnit?: TimeUnit;
  /** Tokens that one prefix hash stands for. Default 512, as in Mooncake's traces. */
  readonly prefixBlockTokens?: number;
  /** Puts requests that are out of order in order. Default: they are refused. */
  readonly sort?: boolean;
  /**
   * Treatment of a request without output tokens, which failed. Default `refuse`, and `skip` in BurstGPT's
   * traces, which are known to list the failures.
   */
  readonly unanswered?: 'refuse' | 'skip';
  /**
   * Takes the requests as they are read, some ten thousand at a time; the trace that comes at the end then has those
   * after the last of these pieces. With `sort` all come at the end.
   */
  readonly onRequests?: (requests: Trace) => void;
}

/** Columns and units as they were read, and requests that were left out. */
export interface TraceReading {
  /** Name of the format, for instance `CSV, as Azure publishes it`. */
  readonly format: string;
  readonly columns: Readonly<Partial<Record<TraceColumn, string>>>;
  /** Unit of the arrivals; `date` for dates and times. */
  readonly arrivalUnit: TimeUnit | 'date';
  /** Requests left out because they have no output. */
  readonly unanswered: number;
  /** Requests that were not in order of arrival. */
  readonly outOfOrder: number;
  /** Conversations, where requests follow answers. */
  readonly conversations?: number;
}

export const MS_PER_UNIT: Readonly<Record<TimeUnit, number>> = { s: 1000, ms: 1, us: 1e-3, ns: 1e-6 };

/** Reads a trace piece by piece, so that its file need not be in memory. */
export interface TraceParser {
  /** Takes the next piece of the text, cut anywhere. @throws {SimulatorError} with the line that is wrong. */
  push(text: string): void;
  /** Says that the text is at its end. @throws {SimulatorError} */
  end(): ReadTrace;
}
