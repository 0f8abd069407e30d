import type { NamedBlock } from './grouped-block-pool.ts';

const FIRST_CAPACITY = 64;

/**
 * The free blocks with content, in the order in which they are taken. An entry is a block with a name, one that only its
 * owner can ask for, or several whose content is forgotten.
 */
export class FreeQueue {
  /** Key of what only one request can ask for; 0 for others. */
  private owners = new Float64Array(FIRST_CAPACITY);
  /** Where such a block lies in its request. */
  private places = new Int32Array(FIRST_CAPACITY);
  /** Blocks of an entry; 0 of one that was removed. */
  private counts = new Int32Array(FIRST_CAPACITY);
  private blocks: (NamedBlock | null)[] = new Array(FIRST_CAPACITY).fill(null);
  /** Numbers of the first entry, and of the one behind the last; entry n lies at n modulo the capacity. */
  private head = 0;
  private tail = 0;
  declare private readonly lose: (block: NamedBlock) => void;

  /** @param lose Called for a block with a name that is taken. */
  constructor(lose: (block: NamedBlock) => void) {
    this.lose = lose;
  }

  appendNamed(block: NamedBlock): void {
    block.entry = this.tail;
    this.append(0, 0, 1, block);
  }

  appendOwn(owner: number, place: number): void {
    this.append(owner, place, 1, null);
  }

  appendForgotten(count: number): void {
    if (count === 0) return;
    const last = (this.tail - 1) & (this.counts.length - 1);
    if (this.tail > this.head && this.owners[last] === 0 && this.blocks[last] === null) {
      this.counts[last] += count;
    } else this.append(0, 0, count, null);
  }

  /** Takes a block with a name out. */
  remove(block: NamedBlock): void {
    const at = block.entry & (this.counts.length - 1);
    this.counts[at] = 0;
    this.blocks[at] = null;
  }

  /** Takes the first `count` blocks, which are there. */
  take(count: number): void {
    const { counts, blocks } = this;
    for (let left = count; left > 0; ) {
      const at = this.head & (counts.length - 1);
      const block = blocks[at];
      const taken = Math.min(left, counts[at]);
      left -= taken;
      counts[at] -= taken;
      if (counts[at] > 0) return;
      this.head++;
      if (block === null) continue;
      blocks[at] = null;
      this.lose(block);
    }
  }

  /** Gives those a name that only `owner` can ask for. */
  nameOwn(owner: number, name: (place: number) => NamedBlock): void {
    for (let entry = this.head; entry < this.tail; entry++) {
      const at = entry & (this.counts.length - 1);
      if (this.owners[at] !== owner || this.counts[at] === 0) continue;
      const block = name(this.places[at]);
      block.entry = entry;
      this.owners[at] = 0;
      this.blocks[at] = block;
    }
  }

  snapshot(placeOf: (block: NamedBlock) => number): FreeQueueSnapshot {
    const entries: FreeQueueSnapshot[number][] = [];
    for (let entry = this.head; entry < this.tail; entry++) {
      const at = entry & (this.counts.length - 1);
      const block = this.blocks[at];
      if (this.counts[at] > 0) {
        entries.push([this.owners[at], this.places[at], this.counts[at], block && placeOf(block)]);
      }
    }
    return entries;
  }

  restore(entries: FreeQueueSnapshot, blockAt: (place: number) => NamedBlock): void {
    this.head = 0;
    this.tail = 0;
    this.blocks.fill(null);
    for (const [owner, place, count, named] of entries) {
      const block = named === null ? null : blockAt(named);
      if (block !== null) block.entry = this.tail;
      this.append(owner, place, count, block);
    }
  }

  private append(owner: number, place: number, count: number, block: NamedBlock | null): void {
    if (this.tail - this.head === this.counts.length) this.grow();
    const at = this.tail++ & (this.counts.length - 1);
    this.owners[at] = owner;
    this.places[at] = place;
    this.counts[at] = count;
    this.blocks[at] = block;
  }

  private grow(): void {
    const old = { owners: this.owners, places: this.places, counts: this.counts, blocks: this.blocks };
    const capacity = 2 * old.counts.length;
    this.owners = new Float64Array(capacity);
    this.places = new Int32Array(capacity);
    this.counts = new Int32Array(capacity);
    this.blocks = new Array(capacity).fill(null);
    for (let entry = this.head; entry < this.tail; entry++) {
      const [from, to] = [entry & (old.counts.length - 1), entry & (capacity - 1)];
      this.owners[to] = old.owners[from];
      this.places[to] = old.places[from];
      this.counts[to] = old.counts[from];
      this.blocks[to] = old.blocks[from];
    }
  }
}

/** The entries, the first to be taken first; of a block with a name its number. */
export type FreeQueueSnapshot = readonly (readonly [
  owner: number,
  place: number,
  count: number,
  named: number | null,
])[];
