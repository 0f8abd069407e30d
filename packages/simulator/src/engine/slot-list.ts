import type { RequestTable } from './request-table.ts';
import { enlarged } from './slot-buffer.ts';

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

/** Lists of slots by number, each in order of admission. A slot is in one of them at a time. */
export class AdmissionLists {
  /** First of each list, or -1. */
  declare readonly heads: Int32Array;
  declare private readonly tails: Int32Array;
  /** Neighbours, by slot. */
  next: Int32Array = new Int32Array(0);
  private prev: Int32Array = new Int32Array(0);
  declare private readonly table: RequestTable;

  constructor(table: RequestTable, lists: number) {
    this.table = table;
    this.heads = new Int32Array(lists).fill(-1);
    this.tails = new Int32Array(lists).fill(-1);
  }

  add(list: number, slot: number): void {
    if (slot >= this.next.length) this.grow();
    const { heads, tails, next, prev } = this;
    const { admitted } = this.table;
    let before = tails[list];
    while (before >= 0 && admitted[before] > admitted[slot]) before = prev[before];
    const after = before < 0 ? heads[list] : next[before];
    prev[slot] = before;
    next[slot] = after;
    if (before < 0) heads[list] = slot;
    else next[before] = slot;
    if (after < 0) tails[list] = slot;
    else prev[after] = slot;
  }

  remove(list: number, slot: number): void {
    const { heads, tails, next, prev } = this;
    const before = prev[slot];
    const after = next[slot];
    if (before < 0) heads[list] = after;
    else next[before] = after;
    if (after < 0) tails[list] = before;
    else prev[after] = before;
  }

  clear(): void {
    this.heads.fill(-1);
    this.tails.fill(-1);
  }

  private grow(): void {
    this.next = enlarged(this.next, this.table.capacity);
    this.prev = enlarged(this.prev, this.table.capacity);
  }
}
