import { type LimitedJsonReading, readLimitedJson } from '../protocol/read-json.ts';

/** A computation that takes longer waits for a turn the next time, ms. */
const LONG_MS = 4;
/** A loop gives way after this time, ms. */
const SLICE_MS = 8;
/** Share of a measured time that is remembered after a shorter one. */
const MEMORY = 0.95;

/** Long computations that wait, by client; the client that is next comes first. */
const waiting = new Map<string, (() => void)[]>();

/**
 * Waits for a turn of the process. One is given in each pass of the event loop, so that short requests are served between
 * any two long computations, however many wait. Clients take turns: one that asks for many delays its own.
 * @param client Digest of who waits, as of `Guard.clientOf`. Default: the server itself.
 */
export function nextTurn(client = ''): Promise<void> {
  return new Promise((resolve) => {
    const own = waiting.get(client);
    if (own !== undefined) {
      own.push(resolve);
      return;
    }
    waiting.set(client, [resolve]);
    if (waiting.size === 1) setImmediate(giveTurn);
  });
}

function giveTurn(): void {
  const [[client, own]] = waiting as unknown as [[string, (() => void)[]]];
  own.shift()!();
  waiting.delete(client);
  if (own.length > 0) waiting.set(client, own);
  if (waiting.size > 0) setImmediate(giveTurn);
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

/** A longer text waits for a turn, characters. */
const LONG_TEXT = 32_768;

/** Parses the JSON of a client within the limits of `readLimitedJson`; a long text in a turn of the client. */
export function readClientJson(
  text: string,
  client?: string,
): LimitedJsonReading | Promise<LimitedJsonReading> {
  if (text.length <= LONG_TEXT) return readLimitedJson(text);
  return nextTurn(client).then(() => readLimitedJson(text));
}
