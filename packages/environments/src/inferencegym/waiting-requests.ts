import { QUEUE_CAPACITY } from './schema.ts';

/** The capacity is a power of two: a mask wraps an index around. */
const WRAP = QUEUE_CAPACITY - 1;
const CLASSES = 3;

/** The requests that wait, first come first served: at most `QUEUE_CAPACITY` of them, in a ring. */
export class WaitingRequests {
  count = 0;
  /** Sum of their prompts, tokens. */
  promptTokens = 0;
  private first = 0;
  private readonly arrivals = new Float64Array(QUEUE_CAPACITY);
  private readonly prompts = new Float64Array(QUEUE_CAPACITY);
  private readonly classes = new Uint8Array(QUEUE_CAPACITY);
  /** The arrivals of each class in a ring of its own: class k has its i-th at `k * QUEUE_CAPACITY + i`. */
  private readonly byClass = new Float64Array(CLASSES * QUEUE_CAPACITY);
  private readonly firstOfClass = new Int32Array(CLASSES);
  private readonly countOfClass = new Int32Array(CLASSES);

  /** Adds a request that arrived at `arrival` (s); answers false when the queue is full. */
  push(arrival: number, prompt: number, kind: number): boolean {
    const { count } = this;
    if (count === QUEUE_CAPACITY) return false;
    const at = (this.first + count) & WRAP;
    this.arrivals[at] = arrival;
    this.prompts[at] = prompt;
    this.classes[at] = kind;
    this.count = count + 1;
    this.promptTokens += prompt;
    const last = (this.firstOfClass[kind] + this.countOfClass[kind]++) & WRAP;
    this.byClass[kind * QUEUE_CAPACITY + last] = arrival;
    return true;
  }

  /** When the i-th from the front arrived, s. */
  arrivalOf(i: number): number {
    return this.arrivals[(this.first + i) & WRAP];
  }

  /** Class of the front. */
  get frontClass(): number {
    return this.classes[this.first];
  }

  /** Removes the front. */
  shift(): void {
    const { first } = this;
    const kind = this.classes[first];
    this.promptTokens -= this.prompts[first];
    this.first = (first + 1) & WRAP;
    this.count--;
    this.firstOfClass[kind] = (this.firstOfClass[kind] + 1) & WRAP;
    this.countOfClass[kind]--;
  }

  /** Those who have waited at `now` (s) for longer than the objective of their class, ms. */
  overdue(now: number, sloMs: readonly number[]): number {
    let overdue = 0;
    for (let kind = 0; kind < CLASSES; kind++) {
      if (this.countOfClass[kind] > 0) overdue += this.arrivedBefore(now - sloMs[kind] / 1000, kind);
    }
    return overdue;
  }

  /** How many of a class arrived before a time. */
  private arrivedBefore(time: number, kind: number): number {
    const { byClass } = this;
    const base = kind * QUEUE_CAPACITY;
    const first = this.firstOfClass[kind];
    let low = 0;
    let high = this.countOfClass[kind];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (byClass[base + ((first + middle) & WRAP)] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
