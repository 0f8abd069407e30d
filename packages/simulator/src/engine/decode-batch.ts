import { CompletionWheel } from './completion-wheel.ts';
import { DECODING, type RequestTable } from './request-table.ts';
import { AdmissionLists } from './slot-list.ts';

/**
 * The decoding sequences while they advance in lockstep, one token each an iteration. `clock` counts those
 * iterations, so the state of every member follows from it without being touched:
 *
 * - emitted tokens = `generatedOffset + clock`
 * - context length (tokens with KV) = `input + emitted - 1`
 * - the iteration of completion = `output - generatedOffset`, by which a wheel finds the first
 * - whether an iteration needs a new KV block depends on (context length - clock) modulo the block size, which is
 *   constant: a count for each residue gives the blocks that any number of iterations will need.
 */
export class DecodeBatch {
  /** Whether the decoding sequences are members. If not, the table holds the state of each. */
  active = false;
  clock = 0;
  count = 0;
  contextSum = 0;
  declare private readonly completions: CompletionWheel;
  declare readonly residues: Int32Array;
  declare readonly byResidue: AdmissionLists | null;
  /** Block size - 1; the block size is a power of two. */
  declare private readonly blockMask: number;
  declare private readonly blockShift: number;
  declare private readonly table: RequestTable;

  /** @param hasWindows Whether the members' windows slide, for which they are listed by residue. */
  constructor(table: RequestTable, blockTokens: number, hasWindows: boolean) {
    this.table = table;
    this.byResidue = hasWindows ? new AdmissionLists(table, blockTokens) : null;
    this.completions = new CompletionWheel(table);
    this.blockMask = blockTokens - 1;
    this.blockShift = 31 - Math.clz32(blockTokens);
    this.residues = new Int32Array(blockTokens);
  }

  contextLength(slot: number): number {
    return this.table.input[slot] + this.table.generatedOffset[slot] + this.clock - 1;
  }

  /** Adds a sequence whose `generatedOffset` holds its emitted tokens. */
  add(slot: number): void {
    this.table.generatedOffset[slot] -= this.clock;
    this.enlist(slot);
  }

  /** Removes a member and leaves its emitted tokens in `generatedOffset`. Answers its context length. */
  remove(slot: number): number {
    const context = this.contextLength(slot);
    this.contextSum -= context;
    const residue = this.residueOf(slot);
    this.residues[residue]--;
    this.byResidue?.remove(residue, slot);
    this.count--;
    this.completions.remove(slot, this.clock);
    this.table.generatedOffset[slot] += this.clock;
    return context;
  }

  /** The member that completes first; of equals the one admitted first. Only when `count > 0`. */
  first(): number {
    return this.completions.first;
  }

  /** Lockstep iterations until the first member completes; >= 1. Only when `count > 0`. */
  iterationsToFirstCompletion(): number {
    return this.completions.iteration - this.clock;
  }

  /** New blocks in each group of layers that the iteration needs which is `ahead` of the next one. */
  blocksForNext(ahead = 0): number {
    return this.residues[this.crossingResidue(ahead)];
  }

  /** New KV blocks that the next `iterations` iterations need. */
  blocksFor(iterations: number): number {
    const rest = iterations & this.blockMask;
    let blocks = ((iterations - rest) / (this.blockMask + 1)) * this.count;
    for (let i = 0; i < rest; i++) blocks += this.residues[this.crossingResidue(i)];
    return blocks;
  }

  /** The largest number of iterations, at most `limit`, whose new KV blocks fit into `free`. */
  iterationsWithin(free: number, limit: number): number {
    // No member needs more than one block an iteration.
    if (limit * this.count <= free) return limit;
    const cycles = Math.floor(free / this.count);
    let iterations = cycles * (this.blockMask + 1);
    if (iterations >= limit) return limit;
    let left = free - cycles * this.count;
    while (iterations < limit) {
      left -= this.residues[this.crossingResidue(iterations)];
      if (left < 0) break;
      iterations++;
    }
    return iterations;
  }

  /** Lets every member emit one token in each of `iterations` iterations. */
  advance(iterations: number): void {
    this.clock += iterations;
    this.contextSum += iterations * this.count;
  }

  /** Makes members of the decoding sequences of the running list from `head` on. */
  activate(head: number): void {
    if (this.active) return;
    this.active = true;
    const { status, next } = this.table;
    for (let slot = head; slot >= 0; slot = next[slot]) if (status[slot] === DECODING) this.add(slot);
  }

  /**
   * Writes the state of all members, who are in the running list from `head` on, into the table, and ends their membership.
   * @param unknownTokens Last tokens of each that cannot be cached yet.
   */
  deactivate(head: number, unknownTokens: number): void {
    if (!this.active) return;
    const { status, next, computed, blocks } = this.table;
    for (let slot = head; slot >= 0; slot = next[slot]) {
      if (status[slot] !== DECODING) continue;
      const context = this.remove(slot);
      computed[slot] = Math.max(computed[slot], context - unknownTokens);
      blocks[slot] = (context + this.blockMask) >> this.blockShift;
    }
    this.active = false;
  }

  /** Goes back to iteration `clock`; if it was active, the decoding sequences from `head` on were its members. */
  restore(clock: number, active: boolean, head: number): void {
    this.clock = clock;
    this.active = active;
    this.count = 0;
    this.contextSum = 0;
    this.residues.fill(0);
    this.byResidue?.clear();
    this.completions.clear();
    if (!active) return;
    const { status, next } = this.table;
    for (let slot = head; slot >= 0; slot = next[slot]) if (status[slot] === DECODING) this.enlist(slot);
  }

  /** Takes up a sequence whose `generatedOffset` goes by the clock. */
  private enlist(slot: number): void {
    this.contextSum += this.contextLength(slot);
    const residue = this.residueOf(slot);
    this.residues[residue]++;
    this.byResidue?.add(residue, slot);
    this.count++;
    this.completions.add(slot);
  }

  /** (context length - clock) modulo the block size. */
  private residueOf(slot: number): number {
    return (this.table.input[slot] + this.table.generatedOffset[slot] - 1) & this.blockMask;
  }

  /** The residue whose members have `tokens` more than whole blocks of context after `ahead` more iterations. */
  crossingResidue(ahead: number, tokens = 0): number {
    return (tokens - this.clock - ahead) & this.blockMask;
  }
}
