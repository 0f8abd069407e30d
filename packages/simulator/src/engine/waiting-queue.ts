import { SlotList } from './slot-list.ts';

/** Priority classes an engine tells apart: 0 is the most urgent. */
export const PRIORITY_CLASSES = 8;

/** Order of the queue: `fcfs` by arrival, `priority` by class, the most urgent first, and then by arrival. */
export type SchedulingPolicy = 'fcfs' | 'priority';

/** The waiting requests, in the order of admission. The policy can change at any time. */
export class WaitingQueue extends SlotList {
  private policy: SchedulingPolicy = 'fcfs';
  /** Whether `arrange` says the order, and the policy does not. */
  isArranged = false;
  /** Whether one may be admitted past others: under `fcfs`, one that is preempted then stands before all, as in vLLM. */
  passesOver = false;

  add(slot: number): void {
    const isLast =
      this.policy === 'fcfs' || this.isArranged || this.tail < 0 || this.isBefore(this.tail, slot);
    if (isLast) this.pushBack(slot);
    else this.insert(slot);
  }

  /** Adds a request that has been admitted before. */
  readd(slot: number): void {
    if (this.isArranged || (this.passesOver && this.policy === 'fcfs')) this.pushFront(slot);
    else this.insert(slot);
  }

  setPolicy(policy: SchedulingPolicy): void {
    if (policy === this.policy) return;
    this.policy = policy;
    if (!this.isArranged) this.arrange(this.slots().sort((a, b) => (this.isBefore(a, b) ? -1 : 1)));
  }

  /** The waiting requests, the head first. */
  slots(): number[] {
    const slots: number[] = [];
    for (let slot = this.head; slot >= 0; slot = this.table.next[slot]) slots.push(slot);
    return slots;
  }

  /** Puts the waiting requests in the order of `slots`, which are all of them. */
  arrange(slots: readonly number[]): void {
    this.setEnds({ head: -1, tail: -1, count: 0 });
    for (const slot of slots) this.pushBack(slot);
  }

  private isBefore(slot: number, other: number): boolean {
    const { priority, order } = this.table;
    const difference = this.policy === 'priority' ? priority[slot] - priority[other] : 0;
    return difference < 0 || (difference === 0 && order[slot] < order[other]);
  }

  /** Requests that come before one which does not come last are few: they are served first. */
  private insert(slot: number): void {
    let before = -1;
    for (let at = this.head; at >= 0 && this.isBefore(at, slot); at = this.table.next[at]) before = at;
    this.insertAfter(before, slot);
  }
}
