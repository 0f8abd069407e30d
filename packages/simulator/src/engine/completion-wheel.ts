import { AdmissionLists } from './admission-lists.ts';
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
  /** The iteration that `first` completes in. */
  iteration = 0;
  declare private readonly rings: AdmissionLists;
  /** Rings in use, one bit each. */
  private readonly used: Int32Array = new Int32Array(WORDS);
  declare private readonly table: RequestTable;

  constructor(table: RequestTable) {
    this.table = table;
    this.rings = new AdmissionLists(table, ROUND);
  }

  add(slot: number): void {
    const { admitted } = this.table;
    const iteration = this.completionOf(slot);
    const ring = iteration & RING;
    this.rings.add(ring, slot);
    this.used[ring >> 5] |= 1 << ring;
    if (this.first < 0 || iteration < this.iteration) {
      this.first = slot;
      this.iteration = iteration;
    } else if (iteration === this.iteration && admitted[slot] < admitted[this.first]) {
      this.first = slot;
    }
  }

  /** Removes a member. None completes before iteration `clock`. */
  remove(slot: number, clock: number): void {
    const { rings, used } = this;
    const ring = this.completionOf(slot) & RING;
    rings.remove(ring, slot);
    if (rings.heads[ring] < 0) used[ring >> 5] &= ~(1 << ring);
    if (slot === this.first) this.findFirst(clock);
  }

  /** Forgets all members. */
  clear(): void {
    this.first = -1;
    this.rings.clear();
    this.used.fill(0);
  }

  private completionOf(slot: number): number {
    return this.table.output[slot] - this.table.generatedOffset[slot];
  }

  private findFirst(clock: number): void {
    const { used } = this;
    const { heads, next } = this.rings;
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
        for (let slot = heads[ring]; slot >= 0; slot = next[slot]) {
          const iteration = this.completionOf(slot);
          if (first < 0 || iteration < earliest) {
            first = slot;
            earliest = iteration;
          }
          if (earliest === inThisRound) break search;
        }
      }
      word = (word + 1) & (WORDS - 1);
      bits = used[word];
    }
    this.first = first;
    this.iteration = earliest;
  }
}
