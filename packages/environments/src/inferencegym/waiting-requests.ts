import type { GymWorkload } from './gym-workload.ts';
import { QUEUE_CAPACITY } from './schema.ts';

/** The capacity is a power of two: a mask wraps an index around. */
const WRAP = QUEUE_CAPACITY - 1;
const CLASSES = 3;

/** The requests that wait, first come first served: at most `QUEUE_CAPACITY` of them, in a ring. */
export class WaitingRequests {
  count = 0;
  /** Sum of their prompts, tokens. */
  promptTokens = 0;
  #first = 0;
  readonly #arrivals = new Float64Array(QUEUE_CAPACITY);
  readonly #prompts = new Float64Array(QUEUE_CAPACITY);
  readonly #classes = new Uint8Array(QUEUE_CAPACITY);
  /** The arrivals of each class in a ring of its own: class k has its i-th at `k * QUEUE_CAPACITY + i`. */
  readonly #byClass = new Float64Array(CLASSES * QUEUE_CAPACITY);
  readonly #firstOfClass = new Int32Array(CLASSES);
  readonly #countOfClass = new Int32Array(CLASSES);

  /**
   * Adds the requests of a step, which arrive evenly spaced within its second, until the queue is full. Answers how many
   * were added.
   * @param workload turned to the step
   */
  join(step: number, arriving: number, workload: GymWorkload): number {
    const { count } = this;
    const first = this.#first;
    const arrivals = this.#arrivals;
    const prompts = this.#prompts;
    const classes = this.#classes;
    const byClass = this.#byClass;
    const firstOfClass = this.#firstOfClass;
    const countOfClass = this.#countOfClass;
    const added = Math.min(arriving, QUEUE_CAPACITY - count);
    let promptTokens = 0;
    for (let i = 0; i < added; i++) {
      const at = (first + count + i) & WRAP;
      const arrival = step + (i + 0.5) / arriving;
      const prompt = workload.promptTokens(i);
      const kind = workload.classOf(i);
      arrivals[at] = arrival;
      prompts[at] = prompt;
      classes[at] = kind;
      promptTokens += prompt;
      const last = (firstOfClass[kind] + countOfClass[kind]++) & WRAP;
      byClass[kind * QUEUE_CAPACITY + last] = arrival;
    }
    this.promptTokens += promptTokens;
    this.count = count + added;
    return added;
  }

  /** Waiting requests of a class. */
  countOf(kind: number): number {
    return this.#countOfClass[kind];
  }

  /** When the i-th from the front arrived, s. */
  arrivalOf(i: number): number {
    return this.#arrivals[(this.#first + i) & WRAP];
  }

  /** Class of the i-th from the front. */
  classOf(i: number): number {
    return this.#classes[(this.#first + i) & WRAP];
  }

  /** Removes this many from the front. */
  drop(count: number): void {
    const first = this.#first;
    const prompts = this.#prompts;
    const classes = this.#classes;
    const firstOfClass = this.#firstOfClass;
    const countOfClass = this.#countOfClass;
    let promptTokens = 0;
    for (let i = 0; i < count; i++) {
      const at = (first + i) & WRAP;
      const kind = classes[at];
      promptTokens += prompts[at];
      firstOfClass[kind] = (firstOfClass[kind] + 1) & WRAP;
      countOfClass[kind]--;
    }
    this.promptTokens -= promptTokens;
    this.#first = (first + count) & WRAP;
    this.count -= count;
  }

  /** Number of requests that at `now` (s) have waited for longer than the objective of their class, ms. */
  overdue(now: number, sloMs: readonly number[]): number {
    let overdue = 0;
    for (let kind = 0; kind < CLASSES; kind++) {
      if (this.#countOfClass[kind] > 0) overdue += this.#arrivedBefore(now - sloMs[kind] / 1000, kind);
    }
    return overdue;
  }

  /** Number of requests of a class that arrived before a time. */
  #arrivedBefore(time: number, kind: number): number {
    const byClass = this.#byClass;
    const base = kind * QUEUE_CAPACITY;
    const first = this.#firstOfClass[kind];
    let low = 0;
    let high = this.#countOfClass[kind];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (byClass[base + ((first + middle) & WRAP)] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
