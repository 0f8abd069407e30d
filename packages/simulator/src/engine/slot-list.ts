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
    this.table.next[slot] = this.head;
    this.table.prev[slot] = -1;
    if (this.head < 0) this.tail = slot;
    else this.table.prev[this.head] = slot;
    this.head = slot;
    this.count++;
  }

  /** Inserts `slot` behind `before`, which is in the list, or at the front when it is -1. */
  insertAfter(before: number, slot: number): void {
    if (before === this.tail) {
      this.pushBack(slot);
    } else if (before < 0) {
      this.pushFront(slot);
    } else {
      const after = this.table.next[before];
      this.table.prev[slot] = before;
      this.table.next[slot] = after;
      this.table.next[before] = slot;
      this.table.prev[after] = slot;
      this.count++;
    }
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

  ends(): SlotListEnds {
    return { head: this.head, tail: this.tail, count: this.count };
  }

  /** Takes over the ends of a list; the links between belong to the table. */
  setEnds(ends: SlotListEnds): void {
    this.head = ends.head;
    this.tail = ends.tail;
    this.count = ends.count;
  }
}

export interface SlotListEnds {
  readonly head: number;
  readonly tail: number;
  readonly count: number;
}
