import type { RequestTable } from './request-table.ts';
import { SlotList, type SlotListEnds } from './slot-list.ts';

/** Priority classes an engine tells apart: 0 is the most urgent. */
export const PRIORITY_CLASSES = 8;

/** Order of the queue: `fcfs` by arrival, `priority` by class, the most urgent first, and then by arrival. */
export type SchedulingPolicy = 'fcfs' | 'priority';

/**
 * The waiting requests: one queue for each priority class. Under `priority` the head is the first of the most urgent
 * class, under `fcfs` the first received of all. Within a class requests are admitted in the order received, so a
 * preempted request always belongs in front of the others of its class, and the policy can change at any time.
 */
export class WaitingQueue {
  count = 0;
  policy: SchedulingPolicy = 'fcfs';
  declare readonly classes: readonly SlotList[];
  declare private readonly table: RequestTable;
  /** Whether `arrange` says the order, and the classes do not. */
  isArranged = false;
  /** Classes at and above this have never been used. */
  private used = 1;

  constructor(table: RequestTable) {
    this.table = table;
    this.classes = Array.from({ length: PRIORITY_CLASSES }, () => new SlotList(table));
  }

  /** The next request to admit, or -1. */
  head(): number {
    if (this.count === 0) return -1;
    return this.used === 1 ? this.classes[0].head : this.headOfClasses();
  }

  private headOfClasses(): number {
    let best = -1;
    for (let c = 0; c < this.used; c++) {
      const slot = this.classes[c].head;
      if (slot < 0) continue;
      if (this.policy === 'priority') return slot;
      if (best < 0 || this.table.order[slot] < this.table.order[best]) best = slot;
    }
    return best;
  }

  pushBack(slot: number): void {
    this.list(slot).pushBack(slot);
    this.count++;
  }

  pushFront(slot: number): void {
    this.list(slot).pushFront(slot);
    this.count++;
  }

  remove(slot: number): void {
    this.list(slot).remove(slot);
    this.count--;
  }

  /** The waiting requests, the head first, where they are arranged. */
  slots(): number[] {
    const slots: number[] = [];
    for (let slot = this.classes[0].head; slot >= 0; slot = this.table.next[slot]) slots.push(slot);
    return slots;
  }

  /** Puts the waiting requests in the order of `slots`, which are all of them. */
  arrange(slots: readonly number[]): void {
    const [list] = this.classes;
    list.setEnds(EMPTY);
    for (const slot of slots) list.pushBack(slot);
  }

  snapshot() {
    return { count: this.count, classes: this.classes.slice(0, this.used).map((list) => list.ends()) };
  }

  restore(snapshot: ReturnType<WaitingQueue['snapshot']>): void {
    this.count = snapshot.count;
    this.used = snapshot.classes.length;
    for (let c = 0; c < PRIORITY_CLASSES; c++) this.classes[c].setEnds(snapshot.classes[c] ?? EMPTY);
  }

  private list(slot: number): SlotList {
    if (this.isArranged) return this.classes[0];
    const priority = this.table.priority[slot];
    if (priority >= this.used) this.used = priority + 1;
    return this.classes[priority];
  }
}

const EMPTY: SlotListEnds = { head: -1, tail: -1, count: 0 };
