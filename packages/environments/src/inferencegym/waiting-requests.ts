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

/** Between these ranks the time to first token rises from its median to its 99th percentile, and beyond at the same rate. */
const MEDIAN_RANK = 0.5;
const P99_RANK = 0.99;
/** The slowest of all, in units of that rise. */
const SLOWEST_RANK = (1 - MEDIAN_RANK) / (P99_RANK - MEDIAN_RANK);

/** The requests that are served in a step: how long they waited, and whether their first tokens come in time. */
export class ServedRequests {
  #count = 0;
  /** Waits, s, and classes, in the order of admission. */
  readonly #waits = new Float64Array(QUEUE_CAPACITY);
  readonly #kinds = new Uint8Array(QUEUE_CAPACITY);
  /** When the server can admit the next request, s. */
  #nextAdmission = 0;

  /** Admits who waits, as far as the server gets from `start` to `end` (s) at `capacity` requests/s. Answers how many. */
  admit(waiting: WaitingRequests, start: number, end: number, capacity: number): number {
    const waits = this.#waits;
    const kinds = this.#kinds;
    const { count } = waiting;
    const interval = 1 / capacity;
    let at = Math.max(this.#nextAdmission, start);
    let served = 0;
    for (; served < count; served++) {
      const arrival = waiting.arrivalOf(served);
      const admission = arrival > at ? arrival : at;
      if (admission >= end) break;
      waits[served] = admission - arrival;
      kinds[served] = waiting.classOf(served);
      at = admission + interval;
    }
    waiting.drop(served);
    this.#nextAdmission = at;
    this.#count = served;
    return served;
  }

  /** Of those served, s; at least one was. */
  get medianWait(): number {
    return this.#waits[this.#count >> 1];
  }
  get longestWait(): number {
    return Math.max(this.#waits[0], this.#waits[this.#count - 1]);
  }

  /** Counts who got the first token later than the objective of their class, and remembers the last times. */
  late(
    sloMs: readonly number[],
    ttftP50: number,
    ttftP99: number,
    workload: GymWorkload,
    recent: RecentLatencies,
  ): number {
    const count = this.#count;
    const waits = this.#waits;
    const kinds = this.#kinds;
    const firstRemembered = Math.max(0, count - REMEMBERED_LATENCIES);
    const slowest = ttftP50 + (ttftP99 - ttftP50) * SLOWEST_RANK;
    let late = 0;
    for (let i = 0; i < firstRemembered; i++) {
      const waited = waits[i] * 1000;
      const slo = sloMs[kinds[i]];
      // A rank is drawn only where it can make a difference.
      if (waited + ttftP50 > slo) late++;
      else if (waited + slowest > slo && waited + timeAt(workload.rank(i), ttftP50, ttftP99) > slo) late++;
    }
    for (let i = firstRemembered; i < count; i++) {
      const ttft = waits[i] * 1000 + timeAt(workload.rank(i), ttftP50, ttftP99);
      if (ttft > sloMs[kinds[i]]) late++;
      recent.push(ttft);
    }
    return late;
  }
}

/** Time to first token without the wait at a rank, given its median and its 99th percentile. */
function timeAt(rank: number, ttftP50: number, ttftP99: number): number {
  const beyond = (rank - MEDIAN_RANK) / (P99_RANK - MEDIAN_RANK);
  return beyond > 0 ? ttftP50 + (ttftP99 - ttftP50) * beyond : ttftP50;
}

/** Times to first token that an observation is the median of. */
const REMEMBERED_LATENCIES = 20;

/** The last 20 times to first token, ms. */
export class RecentLatencies {
  #count = 0;
  #next = 0;
  readonly #values = new Float64Array(REMEMBERED_LATENCIES);
  readonly #sorted = new Float64Array(REMEMBERED_LATENCIES);

  push(ms: number): void {
    const next = this.#next;
    this.#values[next] = ms;
    this.#next = next + 1 === REMEMBERED_LATENCIES ? 0 : next + 1;
    if (this.#count < REMEMBERED_LATENCIES) this.#count++;
  }

  /** 0 when there are none. */
  median(): number {
    const count = this.#count;
    const values = this.#values;
    const sorted = this.#sorted;
    if (count === 0) return 0;
    for (let i = 0; i < count; i++) {
      const value = values[i];
      let at = i;
      for (; at > 0 && sorted[at - 1] > value; at--) sorted[at] = sorted[at - 1];
      sorted[at] = value;
    }
    const middle = count >> 1;
    return count % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  }
}
