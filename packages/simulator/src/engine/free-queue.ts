import type { NamedBlock } from './grouped-block-pool.ts';

const FIRST_CAPACITY = 64;

/**
 * The free blocks with content, in the order in which they are taken. An entry is a block with a name, blocks that only their
 * owner can ask for, or several whose content is forgotten.
 */
export class FreeQueue {
  /** Key of what only one request can ask for; 0 for others. */
  private owners: Float64Array = new Float64Array(FIRST_CAPACITY);
  /** Of what an owner can ask for: the first block, the one behind the last, and the groups, in each of which it freed these. */
  private froms: Int32Array = new Int32Array(FIRST_CAPACITY);
  private ends: Int32Array = new Int32Array(FIRST_CAPACITY);
  private spans: Int32Array = new Int32Array(FIRST_CAPACITY);
  /** Blocks of an entry that are left; 0 of one that was removed. */
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
    this.append(1, block);
    block.entry = this.tail - 1;
  }

  /** Frees the blocks from `from` to before `end` of a request, the last first, in each of `groups` groups, which `span` names. */
  appendOwn(owner: number, span: number, groups: number, from: number, end: number): void {
    this.append(groups * (end - from), null);
    const at = (this.tail - 1) & (this.counts.length - 1);
    this.owners[at] = owner;
    this.froms[at] = from;
    this.ends[at] = end;
    this.spans[at] = span;
  }

  appendForgotten(count: number): void {
    if (count === 0) return;
    const last = (this.tail - 1) & (this.counts.length - 1);
    if (this.tail > this.head && this.owners[last] === 0 && this.blocks[last] === null) {
      this.counts[last] += count;
    } else this.append(count, null);
  }

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
  nameOwn(owner: number, name: (group: number, at: number) => NamedBlock, groupsOf: GroupsOf): void {
    const entries = this.snapshot((block) => block);
    this.restore(
      entries,
      (block) => block,
      (entry) => {
        const [of, from, end, span, count] = entry;
        if (of !== owner) return false;
        const groups = groupsOf(span);
        const length = end - from;
        for (let i = groups.length * length - count; i < groups.length * length; i++) {
          this.appendNamed(name(groups[Math.floor(i / length)], end - 1 - (i % length)));
        }
        return true;
      },
    );
  }

  /** The entries, the first to be taken first; of a block with a name that name. */
  snapshot<Name>(nameOf: (block: NamedBlock) => Name): FreeEntry<Name>[] {
    const { owners, froms, ends, spans, counts, blocks } = this;
    const entries: FreeEntry<Name>[] = [];
    for (let entry = this.head; entry < this.tail; entry++) {
      const at = entry & (counts.length - 1);
      const block = blocks[at];
      if (counts[at] === 0) continue;
      entries.push([owners[at], froms[at], ends[at], spans[at], counts[at], block && nameOf(block)]);
    }
    return entries;
  }

  /** @param replace takes an entry's place, where it answers true */
  restore<Name>(
    entries: readonly FreeEntry<Name>[],
    blockOf: (name: Name) => NamedBlock,
    replace?: (entry: FreeEntry<Name>) => boolean,
  ): void {
    this.head = 0;
    this.tail = 0;
    this.blocks.fill(null);
    for (const entry of entries) {
      if (replace?.(entry)) continue;
      const [owner, from, end, span, count, named] = entry;
      if (named !== null) this.appendNamed(blockOf(named));
      else if (owner !== 0) {
        this.appendOwn(owner, span, 0, from, end);
        this.counts[(this.tail - 1) & (this.counts.length - 1)] = count;
      } else this.append(count, null);
    }
  }

  private append(count: number, block: NamedBlock | null): void {
    if (this.tail - this.head === this.counts.length) this.makeRoom();
    const at = this.tail++ & (this.counts.length - 1);
    this.owners[at] = 0;
    this.counts[at] = count;
    // Entries that are not in use have none.
    if (block !== null) this.blocks[at] = block;
  }

  /**
   * Makes room: who could ask for what was freed long ago is forgotten, and such neighbours become one entry. What is left of the
   * first entries moves to the recent ones.
   */
  private makeRoom(): void {
    const { owners, counts, blocks } = this;
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
      counts[moved] = counts[at];
      blocks[at] = null;
      blocks[moved] = block;
      if (block !== null) block.entry = to;
    }
    this.head = to;
    if (2 * (this.tail - this.head) > counts.length) this.grow();
  }

  private grow(): void {
    const entries = this.snapshot((block) => block);
    const capacity = 2 * this.counts.length;
    this.owners = new Float64Array(capacity);
    for (const column of ['froms', 'ends', 'spans', 'counts'] as const)
      this[column] = new Int32Array(capacity);
    this.blocks = new Array(capacity).fill(null);
    this.restore(entries, (block) => block);
  }
}

/** The groups that a span names. */
export type GroupsOf = (span: number) => readonly number[];

type FreeEntry<Name> = readonly [
  owner: number,
  from: number,
  end: number,
  span: number,
  count: number,
  named: Name | null,
];
