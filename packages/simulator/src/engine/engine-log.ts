/** A growing column of numbers whose storage is kept when it is cleared. */
class Column {
  values = new Float64Array(256);

  ensure(length: number): void {
    if (length <= this.values.length) return;
    const grown = new Float64Array(Math.max(length, this.values.length * 2));
    grown.set(this.values);
    this.values = grown;
  }
}

/** Requests that completed, in order of completion: entry i is (`ids[i]`, `arrivals[i]`, ...), times in ticks. */
export class CompletionLog {
  count = 0;
  private readonly columns = [new Column(), new Column(), new Column(), new Column(), new Column()] as const;

  get ids(): Float64Array {
    return this.columns[0].values;
  }
  get arrivals(): Float64Array {
    return this.columns[1].values;
  }
  get firstTokens(): Float64Array {
    return this.columns[2].values;
  }
  get lastTokens(): Float64Array {
    return this.columns[3].values;
  }
  get outputs(): Float64Array {
    return this.columns[4].values;
  }

  push(id: number, arrival: number, firstToken: number, lastToken: number, output: number): void {
    const at = this.count++;
    for (const column of this.columns) column.ensure(this.count);
    this.columns[0].values[at] = id;
    this.columns[1].values[at] = arrival;
    this.columns[2].values[at] = firstToken;
    this.columns[3].values[at] = lastToken;
    this.columns[4].values[at] = output;
  }

  clear(): void {
    this.count = 0;
  }
}

/** Requests that got their first token, in order, times in ticks. */
export class FirstTokenLog {
  count = 0;
  private readonly columns = [new Column(), new Column(), new Column()] as const;

  get ids(): Float64Array {
    return this.columns[0].values;
  }
  get arrivals(): Float64Array {
    return this.columns[1].values;
  }
  get firstTokens(): Float64Array {
    return this.columns[2].values;
  }

  push(id: number, arrival: number, firstToken: number): void {
    const at = this.count++;
    for (const column of this.columns) column.ensure(this.count);
    this.columns[0].values[at] = id;
    this.columns[1].values[at] = arrival;
    this.columns[2].values[at] = firstToken;
  }

  clear(): void {
    this.count = 0;
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
  /** -1 before the first token. */
  readonly firstToken: number;
  readonly lastToken: number;
}

/** What an engine did since its counters were last cleared. */
export interface EngineCounters {
  iterations: number;
  /** Ticks spent in iterations. */
  busyTicks: number;
  /** Tokens emitted. */
  outputTokens: number;
  /** Prompt tokens computed, recomputation included. */
  prefillTokens: number;
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
    preemptions: 0,
    rejected: 0,
    completed: 0,
    draftTokens: 0,
    acceptedTokens: 0,
  };
}
