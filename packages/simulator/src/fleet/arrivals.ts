import type { FleetRequest } from './fleet-options.ts';

/** Requests that have not arrived yet: a binary heap by tick of arrival, then by id. */
export class Arrivals {
  private readonly heap: FleetRequest[];

  constructor(requests: readonly FleetRequest[] = []) {
    this.heap = requests.slice();
  }

  /** Tick of the next arrival; `Infinity` when there is none. */
  get next(): number {
    return this.heap.length === 0 ? Number.POSITIVE_INFINITY : this.heap[0].arrival;
  }

  get count(): number {
    return this.heap.length;
  }

  /** All of them, in the order of the heap, which `new Arrivals` takes. */
  requests(): readonly FleetRequest[] {
    return this.heap.slice();
  }

  push(request: FleetRequest): void {
    const { heap } = this;
    let at = heap.length;
    heap.push(request);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (comesFirst(heap[parent], request)) break;
      heap[at] = heap[parent];
      at = parent;
    }
    heap[at] = request;
  }

  /** Takes the next one; only when there is one. */
  take(): FleetRequest {
    const { heap } = this;
    const first = heap[0];
    const last = heap.pop() as FleetRequest;
    if (heap.length === 0) return first;
    let at = 0;
    for (let child = 1; child < heap.length; child = 2 * at + 1) {
      if (child + 1 < heap.length && comesFirst(heap[child + 1], heap[child])) child++;
      if (comesFirst(last, heap[child])) break;
      heap[at] = heap[child];
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

function comesFirst(a: FleetRequest, b: FleetRequest): boolean {
  return a.arrival < b.arrival || (a.arrival === b.arrival && a.id < b.id);
}
