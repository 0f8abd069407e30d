import type { RequestTable } from './request-table.ts';

/** A doubly linked list of slots, threaded through the table's `next` and `prev`. A slot is in one list at a time. */
export class SlotList {
  head = -1;
  tail = -1;
  count = 0;
  declare protected readonly table: RequestTable;

  constructor(table: RequestTable) {
    this.table = table;
  }

  pushBack(slot: number): void {
    this.table.prev[slot] = this.tail;
    this.table.next[slot] = -1;
    if (this.tail < 0) this.head = slot;
    else this.table.next[this.tail] = slot;
    this.tail = slot;
    this.count++;
  }

  pushFront(slot: number): void {
    this.insertAfter(-1, slot);
  }

  /** Inserts `slot` behind `before`, which is in the list, or at the front when it is -1. */
  insertAfter(before: number, slot: number): void {
    const { next, prev } = this.table;
    const after = before < 0 ? this.head : next[before];
    prev[slot] = before;
    next[slot] = after;
    if (before < 0) this.head = slot;
    else next[before] = slot;
    if (after < 0) this.tail = slot;
    else prev[after] = slot;
    this.count++;
  }

  remove(slot: number): void {
    const before = this.table.prev[slot];
    const after = this.table.next[slot];
    if (before < 0) this.head = after;
    else this.table.next[before] = after;
    if (after < 0) this.tail = before;
    else this.table.prev[after] = before;
    this.count--;
  }

  ends() {
    const { head, tail, count } = this;
    return { head, tail, count };
  }

  /** Takes over the ends of a list; the links between belong to the table. */
  setEnds(ends: ReturnType<SlotList['ends']>): void {
    Object.assign(this, ends);
  }
}
