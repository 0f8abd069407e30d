import type { RequestTable } from './request-table.ts';

/** The decodes in lockstep by the residue of their context, those of each in order of admission. */
export class ResidueLists {
  /** First of each list, or -1. */
  declare readonly heads: Int32Array;
  declare private readonly tails: Int32Array;
  /** Neighbours, by slot. */
  next: Int32Array = new Int32Array(0);
  private prev: Int32Array = new Int32Array(0);
  declare private readonly table: RequestTable;

  constructor(table: RequestTable, residues: number) {
    this.table = table;
    this.heads = new Int32Array(residues).fill(-1);
    this.tails = new Int32Array(residues).fill(-1);
  }

  add(residue: number, slot: number): void {
    if (slot >= this.next.length) this.grow();
    const { heads, tails, next, prev } = this;
    const { admitted } = this.table;
    let before = tails[residue];
    while (before >= 0 && admitted[before] > admitted[slot]) before = prev[before];
    const after = before < 0 ? heads[residue] : next[before];
    prev[slot] = before;
    next[slot] = after;
    if (before < 0) heads[residue] = slot;
    else next[before] = slot;
    if (after < 0) tails[residue] = slot;
    else prev[after] = slot;
  }

  remove(residue: number, slot: number): void {
    const { heads, tails, next, prev } = this;
    const [before, after] = [prev[slot], next[slot]];
    if (before < 0) heads[residue] = after;
    else next[before] = after;
    if (after < 0) tails[residue] = before;
    else prev[after] = before;
  }

  clear(): void {
    this.heads.fill(-1);
    this.tails.fill(-1);
  }

  private grow(): void {
    const { next, prev } = this;
    this.next = new Int32Array(this.table.capacity);
    this.prev = new Int32Array(this.table.capacity);
    this.next.set(next);
    this.prev.set(prev);
  }
}
