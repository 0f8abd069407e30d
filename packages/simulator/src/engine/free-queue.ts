import type { NamedBlock } from './grouped-block-pool.ts';

const FIRST_CAPACITY = 64;

/**
 * The free blocks with content, in the order in which they are taken. An entry is a block with a name, one that only its
 * owner can ask for, or several whose content is forgotten.
 */
export class FreeQueue {
  /** Key of what only one request can ask for; 0 for others. */
  private owners: Float64Array = new Float64Array(FIRST_CAPACITY);
  /** Where the block lies in that request. */
  private places: Int32Array = new Int32Array(FIRST_CAPACITY);
  /** Blocks of an entry; 0 of one that was removed. */
  private counts: Int32Array = new Int32Array(FIRST_CAPACITY);
  private blocks: (NamedBlock | null)[] = new Array(FIRST_CAPACITY).fill(null);
  /** Numbers of the first entry, and of the one behind the last; entry n lies at n modulo the capacity. */
  private head = 0;
  private tail = 0;
  declare private readonly lose: (block: NamedBlock) => void;
  declare private readonly remembered: number;

  /**
   * @param remembered Last entries of which it is known who can ask for them. A request is preempted, and asks for its blocks,
   *   when there are fewer free ones than another lacks.
   * @param lose Called for a block with a name that is taken.
   */
  constructor(remembered: number, lose: (block: NamedBlock) => void) {
    this.remembered = remembered;
    this.lose = lose;
  }

  appendNamed(block: NamedBlock): void {
    this.append(0, 0, 1, block);
    block.entry = this.tail - 1;
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
      this.append(owner, place, count, block);
      if (block !== null) block.entry = this.tail - 1;
    }
  }

  private append(owner: number, place: number, count: number, block: NamedBlock | null): void {
    if (this.tail - this.head === this.counts.length) this.makeRoom();
    const at = this.tail++ & (this.counts.length - 1);
    this.owners[at] = owner;
    this.places[at] = place;
    this.counts[at] = count;
    // Entries that are not in use have none.
    if (block !== null) this.blocks[at] = block;
  }

  /**
   * Makes room: who could ask for what was freed long ago is forgotten, and such neighbours become one entry. What is left of the
   * first entries moves to the recent ones.
   */
  private makeRoom(): void {
    const { owners, places, counts, blocks } = this;
    const mask = counts.length - 1;
    let to = Math.max(this.head, this.tail - this.remembered);
    const recent = to;
    for (let entry = to - 1; entry >= this.head; entry--) {
      const at = entry & mask;
      const block = blocks[at];
      if (counts[at] === 0) continue;
      const next = to & mask;
      if (block === null && to < recent && blocks[next] === null) {
        counts[next] += counts[at];
        continue;
      }
      const moved = --to & mask;
      owners[moved] = 0;
      places[moved] = 0;
      counts[moved] = counts[at];
      blocks[at] = null;
      blocks[moved] = block;
      if (block !== null) block.entry = to;
    }
    this.head = to;
    if (2 * (this.tail - this.head) > counts.length) this.grow();
  }

  private grow(): void {
    const { owners, places, counts, blocks } = this;
    const capacity = 2 * counts.length;
    this.owners = new Float64Array(capacity);
    this.places = new Int32Array(capacity);
    this.counts = new Int32Array(capacity);
    this.blocks = new Array(capacity).fill(null);
    for (let entry = this.head; entry < this.tail; entry++) {
      const [from, to] = [entry & (counts.length - 1), entry & (capacity - 1)];
      this.owners[to] = owners[from];
      this.places[to] = places[from];
      this.counts[to] = counts[from];
      this.blocks[to] = blocks[from];
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
