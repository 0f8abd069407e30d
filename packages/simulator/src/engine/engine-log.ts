import type { RequestView } from '../policy/views.ts';
import type { PromptPrefix } from './prefix-cache.ts';
import type { RequestTable } from './request-table.ts';
import { enlarged } from './slot-buffer.ts';

const FIRST_CAPACITY = 256;

function grow<Column extends string>(log: Record<Column, Float64Array>, columns: readonly Column[]): void {
  for (const column of columns) log[column] = enlarged(log[column], 2 * log[column].length);
}

/** Requests that got their first token, in order: entry i is (`ids[i]`, `arrivals[i]`, ...), times in ticks. */
export class FirstTokenLog {
  count = 0;
  ids: Float64Array = new Float64Array(FIRST_CAPACITY);
  arrivals: Float64Array = new Float64Array(FIRST_CAPACITY);
  firstTokens: Float64Array = new Float64Array(FIRST_CAPACITY);

  push(table: RequestTable, slot: number): void {
    if (this.count === this.ids.length) grow(this, ['ids', 'arrivals', 'firstTokens']);
    const at = this.count++;
    this.ids[at] = table.id[slot];
    this.arrivals[at] = table.arrival[slot];
    this.firstTokens[at] = table.firstToken[slot];
  }

  /** Empties the log; its storage is kept. */
  clear(): void {
    this.count = 0;
  }
}

/** Requests that completed, in order of completion. */
export class CompletionLog extends FirstTokenLog {
  /** Begin of the first iteration that had the request. */
  scheduled: Float64Array = new Float64Array(FIRST_CAPACITY);
  lastTokens: Float64Array = new Float64Array(FIRST_CAPACITY);
  outputs: Float64Array = new Float64Array(FIRST_CAPACITY);

  override push(table: RequestTable, slot: number): void {
    if (this.count === this.scheduled.length) grow(this, ['scheduled', 'lastTokens', 'outputs']);
    const at = this.count;
    this.scheduled[at] = table.scheduled[slot];
    this.lastTokens[at] = table.lastToken[slot];
    this.outputs[at] = table.output[slot];
    super.push(table, slot);
  }
}

/** A request as it is handed to an engine. */
export interface EngineRequest {
  /** The caller's number for it; comes back in the logs. */
  readonly id: number;
  /** Tick of arrival; not before that of the request submitted last. */
  readonly arrival: number;
  /** Prompt tokens, >= 1. */
  readonly input: number;
  /** Tokens to generate, >= 1. */
  readonly output: number;
  /** 0 (most urgent) .. 7. Default 0. */
  readonly priority?: number;
  /** LoRA adapter that it asks for, from 1 on; 0 is the base model. Default 0. */
  readonly adapter?: number;
  /** Prefix that the prompt shares with others. Ids are whole numbers from 0. Matters with `prefixCaching` only. */
  readonly prefix?: PromptPrefix | null;
  /** The request as a policy sees it, where one orders the queue. */
  readonly view?: RequestView;
}

/** A request between engines: what it is and how far it has come. Times in ticks. */
export interface RequestProgress
  extends Required<Omit<EngineRequest, 'view' | 'adapter'>>,
    Pick<EngineRequest, 'view' | 'adapter'> {
  /** When the scheduler first sees it. */
  readonly visible: number;
  /** Tokens generated so far. */
  readonly emitted: number;
  /** Begin of the first iteration that had it; `NOT_YET` before it. */
  readonly scheduled: number;
  /** `NOT_YET` before the first token. */
  readonly firstToken: number;
  readonly lastToken: number;
}

/** Counts of an engine since they were last cleared. */
export type EngineCounters = ReturnType<typeof zeroCounters>;

export function zeroCounters() {
  return {
    iterations: 0,
    /** Ticks spent in iterations. */
    busyTicks: 0,
    /** Tokens emitted. */
    outputTokens: 0,
    /** Prompt tokens computed, recomputation included. */
    prefillTokens: 0,
    /** Prompt tokens found in the prefix cache. */
    cachedTokens: 0,
    /** Prompt tokens loaded from the memory of the host. */
    loadedTokens: 0,
    preemptions: 0,
    /** Requests refused because they can never fit the KV pool. */
    rejected: 0,
    completed: 0,
    draftTokens: 0,
    acceptedTokens: 0,
  };
}

export function addCounters(sum: EngineCounters, counters: EngineCounters): void {
  for (const name of Object.keys(sum) as (keyof EngineCounters)[]) sum[name] += counters[name];
}
