import type { GymWorkload } from './gym-workload.ts';
import { QUEUE_CAPACITY } from './schema.ts';
import type { WaitingRequests } from './waiting-requests.ts';

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
