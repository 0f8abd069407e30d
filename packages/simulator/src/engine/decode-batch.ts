import type { RequestTable } from './request-table.ts';

/**
 * Admissions that the key of a member tells apart. More than can run at once, and small enough that a key, with 2^31
 * iterations, is a whole number that a double holds.
 */
const ADMISSIONS = 2 ** 21;

/**
 * The decoding sequences while they advance in lockstep, one token each an iteration. `clock` counts those
 * iterations, so the state of every member follows from it without being touched:
 *
 * - emitted tokens = `generatedOffset + clock`
 * - context length (tokens with KV) = `input + emitted - 1`
 * - the iteration of completion = `output - generatedOffset`, the key of a heap
 * - whether an iteration needs a new KV block depends on (context length - clock) modulo the block size, which is
 *   constant: a count for each residue gives the blocks that any number of iterations will need.
 */
export class DecodeBatch {
  /** Lockstep iterations so far. */
  clock = 0;
  count = 0;
  /** Sum of the members' context lengths. */
  contextSum = 0;
  /** A binary heap of members, with their keys beside them. */
  private heap: Int32Array = new Int32Array(64);
  private keys: Float64Array = new Float64Array(64);
  private readonly residues: Int32Array;
  /** Block size - 1; the block size is a power of two. */
  private readonly blockMask: number;
  private readonly table: RequestTable;

  constructor(table: RequestTable, blockTokens: number) {
    this.table = table;
    this.blockMask = blockTokens - 1;
    this.residues = new Int32Array(blockTokens);
  }

  contextLength(slot: number): number {
    return this.table.input[slot] + this.table.generatedOffset[slot] + this.clock - 1;
  }

  /** Adds a sequence whose `generatedOffset` holds its emitted tokens. */
  add(slot: number): void {
    const table = this.table;
    const offset = table.generatedOffset[slot] - this.clock;
    table.generatedOffset[slot] = offset;
    this.contextSum += table.input[slot] + offset + this.clock - 1;
    this.residues[this.residueOf(slot)]++;
    if (this.count === this.heap.length) this.growHeap();
    this.siftUp(this.count++, slot, this.keyOf(slot));
  }

  /** Removes a member and leaves its emitted tokens in `generatedOffset`. */
  remove(slot: number): void {
    this.contextSum -= this.contextLength(slot);
    this.residues[this.residueOf(slot)]--;
    this.removeFromHeap(this.heap[0] === slot ? 0 : this.heap.indexOf(slot));
    this.table.generatedOffset[slot] += this.clock;
  }

  /** The member that completes first; of equals the one admitted first. Only when `count > 0`. */
  first(): number {
    return this.heap[0];
  }

  /** Lockstep iterations until the first member completes; >= 1. Only when `count > 0`. */
  iterationsToFirstCompletion(): number {
    const slot = this.heap[0];
    return this.table.output[slot] - this.table.generatedOffset[slot] - this.clock;
  }

  /** New KV blocks that the next iteration needs. */
  blocksForNext(): number {
    return this.residues[this.crossingResidue(0)];
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

  snapshot(): DecodeBatchSnapshot {
    return {
      clock: this.clock,
      count: this.count,
      contextSum: this.contextSum,
      heap: this.heap.slice(0, this.count),
      keys: this.keys.slice(0, this.count),
      residues: this.residues.slice(),
    };
  }

  restore(snapshot: DecodeBatchSnapshot): void {
    this.clock = snapshot.clock;
    this.count = snapshot.count;
    this.contextSum = snapshot.contextSum;
    while (this.heap.length < snapshot.count) this.growHeap();
    this.heap.set(snapshot.heap);
    this.keys.set(snapshot.keys);
    this.residues.set(snapshot.residues);
  }

  /** (context length - clock) modulo the block size. */
  private residueOf(slot: number): number {
    return (this.table.input[slot] + this.table.generatedOffset[slot] - 1) & this.blockMask;
  }

  /** The residue whose members are at a block's end after `ahead` more iterations. */
  private crossingResidue(ahead: number): number {
    return -(this.clock + ahead) & this.blockMask;
  }

  /** Iteration of completion, then order of admission. */
  private keyOf(slot: number): number {
    const completion = this.table.output[slot] - this.table.generatedOffset[slot];
    return completion * ADMISSIONS + (this.table.admitted[slot] & (ADMISSIONS - 1));
  }

  private siftUp(position: number, slot: number, key: number): void {
    const { heap, keys } = this;
    let at = position;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (key >= keys[parent]) break;
      heap[at] = heap[parent];
      keys[at] = keys[parent];
      at = parent;
    }
    heap[at] = slot;
    keys[at] = key;
  }

  private removeFromHeap(position: number): void {
    const { heap, keys } = this;
    const end = --this.count;
    if (position === end) return;
    const slot = heap[end];
    const key = keys[end];
    let at = position;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= end) break;
      if (child + 1 < end && keys[child + 1] < keys[child]) child++;
      if (keys[child] >= key) break;
      heap[at] = heap[child];
      keys[at] = keys[child];
      at = child;
    }
    this.siftUp(at, slot, key);
  }

  private growHeap(): void {
    const heap = new Int32Array(this.heap.length * 2);
    const keys = new Float64Array(heap.length);
    heap.set(this.heap);
    keys.set(this.keys);
    this.heap = heap;
    this.keys = keys;
  }
}

export interface DecodeBatchSnapshot {
  readonly clock: number;
  readonly count: number;
  readonly contextSum: number;
  readonly heap: Int32Array;
  readonly keys: Float64Array;
  readonly residues: Int32Array;
}
