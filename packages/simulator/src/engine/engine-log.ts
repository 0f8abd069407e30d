import type { RequestView } from '../policy/views.ts';
import type { PromptPrefix } from './prefix-cache.ts';
import type { RequestTable } from './request-table.ts';

function grown(column: Float64Array): Float64Array {
  const larger = new Float64Array(column.length * 2);
  larger.set(column);
  return larger;
}

/** Requests that completed, in order of completion: entry i is (`ids[i]`, `arrivals[i]`, ...), times in ticks. */
export class CompletionLog {
  count = 0;
  ids: Float64Array = new Float64Array(256);
  arrivals: Float64Array = new Float64Array(256);
  /** Begin of the first iteration that had the request. */
  scheduled: Float64Array = new Float64Array(256);
  firstTokens: Float64Array = new Float64Array(256);
  lastTokens: Float64Array = new Float64Array(256);
  /** Tokens generated. */
  outputs: Float64Array = new Float64Array(256);

  /** Adds a request whose last token is in the table. */
  push(table: RequestTable, slot: number): void {
    if (this.count === this.ids.length) this.grow();
    const at = this.count++;
    this.ids[at] = table.id[slot];
    this.arrivals[at] = table.arrival[slot];
    this.scheduled[at] = table.scheduled[slot];
    this.firstTokens[at] = table.firstToken[slot];
    this.lastTokens[at] = table.lastToken[slot];
    this.outputs[at] = table.output[slot];
  }

  /** Empties the log; its storage is kept. */
  clear(): void {
    this.count = 0;
  }

  private grow(): void {
    this.ids = grown(this.ids);
    this.arrivals = grown(this.arrivals);
    this.scheduled = grown(this.scheduled);
    this.firstTokens = grown(this.firstTokens);
    this.lastTokens = grown(this.lastTokens);
    this.outputs = grown(this.outputs);
  }
}

/** Requests that got their first token, in order, times in ticks. */
export class FirstTokenLog {
  count = 0;
  ids: Float64Array = new Float64Array(256);
  arrivals: Float64Array = new Float64Array(256);
  firstTokens: Float64Array = new Float64Array(256);

  /** Adds a request whose first token is in the table. */
  push(table: RequestTable, slot: number): void {
    if (this.count === this.ids.length) this.grow();
    const at = this.count++;
    this.ids[at] = table.id[slot];
    this.arrivals[at] = table.arrival[slot];
    this.firstTokens[at] = table.firstToken[slot];
  }

  /** Empties the log; its storage is kept. */
  clear(): void {
    this.count = 0;
  }

  private grow(): void {
    this.ids = grown(this.ids);
    this.arrivals = grown(this.arrivals);
    this.firstTokens = grown(this.firstTokens);
  }
}

/** A request between engines: what it is and how far it has come. Times in ticks. */
export interface RequestProgress {
  /** The caller's number for it. */
  readonly id: number;
  readonly arrival: number;
  /** When the scheduler first sees it. */
  readonly visible: number;
  /** Prompt tokens. */
  readonly input: number;
  /** Tokens to generate. */
  readonly output: number;
  /** 0 (most urgent) .. 7. */
  readonly priority: number;
  /** Tokens generated so far. */
  readonly emitted: number;
  /** Begin of the first iteration that had it; `NOT_YET` before it. */
  readonly scheduled: number;
  /** `NOT_YET` before the first token. */
  readonly firstToken: number;
  readonly lastToken: number;
  /** Prefix that its prompt shares with others; `null` when none is known. */
  readonly prefix: PromptPrefix | null;
  /** That of `EngineRequest`. */
  readonly view?: RequestView;
}

/** Counts of an engine since they were last cleared. */
export interface EngineCounters {
  iterations: number;
  /** Ticks spent in iterations. */
  busyTicks: number;
  /** Tokens emitted. */
  outputTokens: number;
  /** Prompt tokens computed, recomputation included. */
  prefillTokens: number;
  /** Prompt tokens found in the prefix cache. */
  cachedTokens: number;
  /** Prompt tokens loaded from the memory of the host. */
  loadedTokens: number;
  preemptions: number;
  /** Requests refused because they can never fit the KV pool. */
  rejected: number;
  completed: number;
  draftTokens: number;
  acceptedTokens: number;
}

export function zeroCounters(): EngineCounters {
  return {
    iterations: 0,
    busyTicks: 0,
    outputTokens: 0,
    prefillTokens: 0,
    cachedTokens: 0,
    loadedTokens: 0,
    preemptions: 0,
    rejected: 0,
    completed: 0,
    draftTokens: 0,
    acceptedTokens: 0,
  };
}

export function addCounters(sum: EngineCounters, counters: EngineCounters): void {
  for (const name of Object.keys(sum) as (keyof EngineCounters)[]) sum[name] += counters[name];
}
