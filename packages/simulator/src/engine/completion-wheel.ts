import type { RequestTable } from './request-table.ts';

/** Iterations of one round of the wheel, a power of two: most outputs are shorter. */
const ROUND = 1024;
/** The bits of an iteration that tell its ring. */
const RING = ROUND - 1;
const WORDS = ROUND / 32;

/**
 * The decoding sequences by the lockstep iteration in which they complete: a hashed timing wheel. A sequence is in the
 * ring of its iteration modulo `ROUND`, behind those admitted before it. A bit for each ring that is in use leads from
 * one completion to the next; what completes in a later round is passed over.
 */
export class CompletionWheel {
  /** The member that completes first; of equals the one admitted first. -1 when there is none. */
  first = -1;
  iteration = 0;
  /** First of each ring, or -1. */
  private readonly rings: Int32Array = new Int32Array(ROUND).fill(-1);
  /** Rings in use, one bit each. */
  private readonly used: Int32Array = new Int32Array(WORDS);
  declare private readonly table: RequestTable;

  constructor(table: RequestTable) {
    this.table = table;
  }

  add(slot: number): void {
    const { admitted, nextInRing, prevInRing } = this.table;
    const iteration = this.completionOf(slot);
    const ring = iteration & RING;
    const head = this.rings[ring];
    if (head < 0) {
      nextInRing[slot] = slot;
      prevInRing[slot] = slot;
      this.rings[ring] = slot;
      this.used[ring >> 5] |= 1 << ring;
    } else {
      const last = prevInRing[head];
      let before = last;
      while (admitted[before] > admitted[slot] && before !== head) before = prevInRing[before];
      if (admitted[before] > admitted[slot]) {
        before = last;
        this.rings[ring] = slot;
      }
      const after = nextInRing[before];
      nextInRing[before] = slot;
      prevInRing[slot] = before;
      nextInRing[slot] = after;
      prevInRing[after] = slot;
    }
    if (this.first < 0 || iteration < this.iteration) {
      this.first = slot;
      this.iteration = iteration;
    } else if (iteration === this.iteration && admitted[slot] < admitted[this.first]) {
      this.first = slot;
    }
  }

  /** Removes a member. None completes before iteration `clock`. */
  remove(slot: number, clock: number): void {
    const { nextInRing, prevInRing } = this.table;
    const ring = this.completionOf(slot) & RING;
    const after = nextInRing[slot];
    if (after === slot) {
      this.rings[ring] = -1;
      this.used[ring >> 5] &= ~(1 << ring);
    } else {
      const before = prevInRing[slot];
      nextInRing[before] = after;
      prevInRing[after] = before;
      if (this.rings[ring] === slot) this.rings[ring] = after;
    }
    if (slot === this.first) this.findFirst(clock);
  }

  clear(): void {
    this.first = -1;
    this.rings.fill(-1);
    this.used.fill(0);
  }

  private completionOf(slot: number): number {
    return this.table.output[slot] - this.table.generatedOffset[slot];
  }

  private findFirst(clock: number): void {
    const { used, rings, table } = this;
    let first = -1;
    let earliest = 0;
    const start = clock & RING;
    let word = start >> 5;
    // The rings before the clock's in its word come last: its word is looked at twice. A shift counts modulo 32.
    let bits = used[word] & (-1 << start);
    search: for (let words = 0; words <= WORDS; words++) {
      for (; bits !== 0; bits &= bits - 1) {
        const ring = word * 32 + 31 - Math.clz32(bits & -bits);
        const inThisRound = clock + ((ring - start) & RING);
        const head = rings[ring];
        let slot = head;
        do {
          const iteration = this.completionOf(slot);
          if (first < 0 || iteration < earliest) {
            first = slot;
            earliest = iteration;
          }
          if (earliest === inThisRound) break search;
          slot = table.nextInRing[slot];
        } while (slot !== head);
      }
      word = (word + 1) & (WORDS - 1);
      bits = used[word];
    }
    this.first = first;
    this.iteration = earliest;
  }
}
