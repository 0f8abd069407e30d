import type { Trace } from './trace.ts';

/** Meanings of a column. */
export type TraceColumn = 'arrival' | 'input' | 'output' | 'prefix';

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
