/** A computation that takes longer waits for a turn the next time, ms. */
const LONG_MS = 4;
/** A loop gives way after this time, ms. */
const SLICE_MS = 8;
/** Share of a measured time that is remembered after a shorter one. */
const MEMORY = 0.95;

/** Who waits, by client. Clients take turns: one that asks for much delays its own. */
export class TurnQueue {
  /** The client that is next comes first. */
  readonly #waiting = new Map<string, (() => void)[]>();

  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  add(client: string, start: () => void): void {
    const own = this.#waiting.get(client);
    if (own === undefined) this.#waiting.set(client, [start]);
    else own.push(start);
  }

  /** Starts the next one of a queue that is not empty. */
  startNext(): void {
    const [[client, own]] = this.#waiting as unknown as [[string, (() => void)[]]];
    this.#waiting.delete(client);
    if (own.length > 1) this.#waiting.set(client, own);
    own.shift()!();
  }
}

const waiting = new TurnQueue();

/**
 * Waits for a turn of the process. One is given in each pass of the event loop, so that short requests are served between
 * any two long computations, however many wait. Timers come after `setImmediate`, which stores write with: a short step that
 * came in this pass is answered before the next long computation begins.
 * @param client Digest of who waits, as of `Guard.clientOf`. Default: the server itself.
 */
export function nextTurn(client = ''): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.isEmpty) setTimeout(giveTurn);
    waiting.add(client, resolve);
  });
}

function giveTurn(): void {
  waiting.startNext();
  if (!waiting.isEmpty) setTimeout(giveTurn);
}

/** Recognises long computations of one kind by the time that the last ones took. */
export class DurationMeter {
  #ms = 0;

  /** True when the next one should wait for a turn. */
  get isLong(): boolean {
    return this.#ms > LONG_MS;
  }

  time<Result>(compute: () => Result): Result {
    const startedAt = performance.now();
    try {
      return compute();
    } finally {
      this.#ms = Math.max(performance.now() - startedAt, this.#ms * MEMORY);
    }
  }
}

/** The turn of a loop. */
export class Turn {
  readonly #client: string | undefined;
  #startedAt = performance.now();

  /** @param client as of `nextTurn` */
  constructor(client?: string) {
    this.#client = client;
  }

  /** True when the loop should wait for its next turn. */
  get isOver(): boolean {
    return performance.now() - this.#startedAt >= SLICE_MS;
  }

  async next(): Promise<void> {
    await nextTurn(this.#client);
    this.#startedAt = performance.now();
  }
}

/** Goes on with a result, at once where it is there. */
export function whenDone<Result, Reply>(
  result: Result | Promise<Result>,
  next: (result: Result) => Reply | Promise<Reply>,
  failed?: (error: unknown) => never,
): Reply | Promise<Reply> {
  return result instanceof Promise ? result.then(next, failed) : next(result);
}
