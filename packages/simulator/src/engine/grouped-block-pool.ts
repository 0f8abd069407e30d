import { BlockPool, type BlockPoolSnapshot } from './block-pool.ts';
import type { PromptPrefix } from './prefix-cache.ts';
import type { RequestTable } from './request-table.ts';

/** Layers with a block table of their own. Without `window` and `chunk` they attend to all tokens. */
export interface KvGroup {
  /** Sliding window, tokens: the last token and those before it. */
  readonly window?: number;
  /** Chunk that attention stays within, tokens, from a multiple of it on. */
  readonly chunk?: number;
}

export const isFullAttention = ({ window, chunk }: KvGroup) => window === undefined && chunk === undefined;

/** Tokens of long sequences that `blocks` blocks hold: of layers with a window or chunks, the blocks of a long one are few. */
export function tokensIn(blocks: number, blockTokens: number, groups: readonly KvGroup[]): number {
  return Math.floor(blocks / Math.max(1, groups.filter(isFullAttention).length)) * blockTokens;
}

/** A block with content, which running requests hold, or which is free and found until it is taken. */
class NamedBlock {
  prev: NamedBlock | null = null;
  next: NamedBlock | null = null;
  holders = 1;
  declare readonly group: number;
  /** The chunk of content, and the place of the block in it. */
  declare readonly key: number;
  declare readonly at: number;

  constructor(group: number, key: number, at: number) {
    this.group = group;
    this.key = key;
    this.at = at;
  }
}

/** Groups that look for prefixes together. */
interface KvLayers {
  readonly attention: KvGroup;
  readonly groups: readonly number[];
  /** Whether a drafter's layers lie there: with full attention, where there is such a group. */
  readonly drafts: boolean;
}

type FindBlock = (group: number, at: number) => NamedBlock | undefined;

/** The blocks of a running request in one group. */
interface HeldBlocks {
  /** Those that are full, from the first on; `null` behind the window. */
  readonly named: (NamedBlock | null)[];
  /** Blocks behind the window, which are free again. */
  skipped: number;
}

/**
 * The KV blocks of an engine whose layers form groups, each with a block table of its own over one pool (vLLM's hybrid KV
 * cache groups). A group with a sliding window or chunks frees the blocks that lie behind them, and
 * needs no more than theirs to find a prefix; a prefix counts as found where every group finds it. Blocks are tracked one by one. Free blocks
 * without content are taken first, then the others in the order in which they became free.
 */
export class GroupedBlockPool extends BlockPool {
  declare private readonly groups: readonly KvGroup[];
  /** Groups with equal attention, those with full attention first. */
  declare private readonly layers: readonly KvLayers[];
  /** Most blocks of a group that a waiting request has to find free: those of a window and of the iterations under way. */
  declare private readonly mostBlocks: readonly number[];
  declare private readonly finds: boolean;
  /** Free blocks without content. */
  declare private empty: number;
  /** Free blocks with content, the next to be taken first. */
  private head: NamedBlock | null = null;
  private tail: NamedBlock | null = null;
  /** Blocks by group, chunk and place in it; of equal ones the first that was filled first. */
  declare private readonly named: readonly Map<number, NamedBlock[][]>[];
  private held: HeldBlocks[][] = [];

  /** @param tokensUnderWay Tokens of the iterations that may be scheduled and not yet known. */
  constructor(
    table: RequestTable,
    blocks: number,
    blockTokens: number,
    prefixCaching: boolean,
    groups: readonly KvGroup[],
    tokensUnderWay: number,
  ) {
    super(table, blocks, blockTokens, false, 0);
    this.groups = groups;
    const hasFull = groups.some(isFullAttention);
    this.layers = [...new Map(groups.map((group) => [JSON.stringify(group), group])).values()]
      .sort((a, b) => Number(isFullAttention(b)) - Number(isFullAttention(a)))
      .map((attention) => ({
        attention,
        groups: [...groups.keys()].filter((at) => JSON.stringify(groups[at]) === JSON.stringify(attention)),
        drafts: isFullAttention(attention) || !hasFull,
      }));
    this.mostBlocks = groups.map(({ window, chunk }) => {
      if (window !== undefined) return this.blocksFor(window - 1 + tokensUnderWay) + 1;
      return chunk === undefined ? Number.POSITIVE_INFINITY : this.blocksFor(chunk + tokensUnderWay);
    });
    this.finds = prefixCaching;
    this.empty = blocks;
    this.named = groups.map(() => new Map());
  }

  override get caches(): boolean {
    return this.finds;
  }

  override get hasWindows(): boolean {
    return true;
  }

  override tokensIn(blocks: number): number {
    return tokensIn(blocks, this.blockTokens, this.groups);
  }

  override blocksOfRequest(tokens: number): number {
    const blocks = this.blocksFor(tokens);
    return this.mostBlocks.reduce((sum, most) => sum + Math.min(blocks, most), 0);
  }

  override missing(slot: number, tokens: number): number {
    return super.missing(slot, tokens) * this.groups.length;
  }

  override resize(slot: number, blocks: number): void {
    const more = (blocks - this.table.blocks[slot]) * this.groups.length;
    if (more > 0) this.take(more);
    else this.give(-more);
    this.table.blocks[slot] = blocks;
  }

  override heldBy(slot: number): number {
    const blocks = this.table.blocks[slot];
    return this.held[slot].reduce((sum, { skipped }) => sum + blocks - skipped, 0);
  }

  override take(blocks: number): void {
    this.free -= blocks;
    const empty = Math.min(this.empty, blocks);
    this.empty -= empty;
    for (let left = blocks - empty; left > 0; left--) this.forgetFirst();
  }

  override give(blocks: number): void {
    this.free += blocks;
    this.empty += blocks;
  }

  override clearCache(): void {
    while (this.head !== null) {
      this.forgetFirst();
      this.empty++;
    }
  }

  override skip(slot: number, settled: number): void {
    const groups = this.held[slot];
    for (let at = 0; at < groups.length; at++) {
      const held = groups[at];
      const end = Math.min(this.skippedBlocks(settled, this.groups[at]), this.table.blocks[slot]);
      if (end <= held.skipped) continue;
      this.letGoOf(held, held.skipped, end);
      held.skipped = end;
    }
  }

  override fits(slot: number, most: number, spare: number, beyond: number): boolean {
    const known = this.table.input[slot] + this.table.generatedOffset[slot];
    const found = this.foundBlocks(slot);
    const blocks = this.blocksFor(Math.min(known, found * this.blockTokens + most) + beyond);
    return this.freeBlocksFor(slot, found, () => blocks) + spare <= this.free;
  }

  override fitsWhole(slot: number, spare: number): boolean {
    const blocks = this.blocksFor(this.table.input[slot] + this.table.generatedOffset[slot]);
    const { mostBlocks } = this;
    const needed = this.freeBlocksFor(slot, this.foundBlocks(slot), (group) =>
      Math.min(blocks, mostBlocks[group]),
    );
    return needed + spare <= this.free;
  }

  /** Free blocks that a waiting request takes for a table of so many blocks in each group, of which it finds `found`. */
  private freeBlocksFor(slot: number, found: number, blocksOf: (group: number) => number): number {
    let needed = 0;
    for (const [group, attention] of this.groups.entries()) {
      needed += Math.max(0, blocksOf(group) - found);
      for (let at = this.skippedBlocks(found * this.blockTokens, attention); at < found; at++) {
        if ((this.findBlock(slot, group, at) as NamedBlock).holders === 0) needed++;
      }
    }
    return needed;
  }

  override cachedTokens(slot: number): number {
    return this.foundBlocks(slot) * this.blockTokens;
  }

  override heldTokens({ ids, ends, chunkTokens, namedTokens }: PromptPrefix, input: number): number {
    if (!this.finds) return 0;
    const { blockShift } = this;
    const most = Math.min(input - 1, namedTokens ?? input) >> blockShift;
    const contents: [key: number, place: number][] = [];
    for (let c = 0, start = 0; c < ids.length && start < most; c++) {
      const end = Math.min(most, (ends === undefined ? (c + 1) * chunkTokens : ends[c]) >> blockShift);
      for (let at = start; at < end; at++) contents.push([ids[c], at - start]);
      start = end;
    }
    const { length } = contents;
    return this.longestFound(length, length, (group, at) => this.blockOf(group, contents[at])) << blockShift;
  }

  override admit(slot: number): number {
    const { table } = this;
    table.namedBlocks[slot] = 0;
    table.ownBlocks[slot] = 0;
    const found = this.foundBlocks(slot);
    this.held[slot] = this.groups.map((attention, group) => {
      const skipped = this.skippedBlocks(found * this.blockTokens, attention);
      const named: (NamedBlock | null)[] = new Array(skipped).fill(null);
      for (let at = skipped; at < found; at++)
        named.push(this.hold(this.findBlock(slot, group, at) as NamedBlock));
      return { named, skipped };
    });
    table.blocks[slot] = found;
    return found * this.blockTokens;
  }

  override fill(slot: number, tokens: number): void {
    if (!this.finds || this.table.transferred[slot] === 1) return;
    const full = tokens >> this.blockShift;
    // The groups have equally many, and most iterations fill none.
    if (this.held[slot][0].named.length >= full) return;
    for (const [group, { named, skipped }] of this.held[slot].entries()) {
      for (let at = named.length; at < full; at++) {
        named.push(at < skipped ? null : this.name(slot, group, at));
      }
    }
  }

  override release(slot: number, blocks: number, computed: number): void {
    this.fill(slot, computed);
    for (const held of this.held[slot]) this.letGoOf(held, held.skipped, blocks);
    this.held[slot] = [];
  }

  override snapshot(): BlockPoolSnapshot {
    const blocks: GroupedBlocksSnapshot['blocks'][number][] = [];
    const places = new Map<NamedBlock, number>();
    for (const chunks of this.named) {
      for (const chunk of chunks.values()) {
        for (const block of chunk.flat()) {
          places.set(block, blocks.length);
          blocks.push([block.group, block.key, block.at, block.holders]);
        }
      }
    }
    const placeOf = (block: NamedBlock | null) => (block === null ? null : (places.get(block) as number));
    const queue: number[] = [];
    for (let block = this.head; block !== null; block = block.next) queue.push(placeOf(block) as number);
    const held = this.held.map((groups) =>
      groups.map(({ named, skipped }) => ({ named: named.map(placeOf), skipped })),
    );
    return { ...super.snapshot(), grouped: { empty: this.empty, blocks, queue, held } };
  }

  override restore(snapshot: BlockPoolSnapshot): void {
    super.restore(snapshot);
    const { empty, blocks, queue, held } = snapshot.grouped as GroupedBlocksSnapshot;
    this.empty = empty;
    this.head = null;
    this.tail = null;
    for (const chunks of this.named) chunks.clear();
    const restored = blocks.map(([group, key, at, holders]) => {
      const block = this.add(new NamedBlock(group, key, at));
      block.holders = holders;
      return block;
    });
    for (const place of queue) this.append(restored[place]);
    this.held = held.map((groups) =>
      groups.map(({ named, skipped }) => ({
        named: named.map((place) => (place === null ? null : restored[place])),
        skipped,
      })),
    );
  }

  /** Blocks that the token behind the first `tokens` does not attend to. */
  private skippedBlocks(tokens: number, { window, chunk }: KvGroup): number {
    if (window !== undefined) return Math.max(0, tokens - window + 1) >> this.blockShift;
    return chunk === undefined ? 0 : (tokens - (tokens % chunk)) >> this.blockShift;
  }

  /**
   * Blocks of a waiting request whose tokens need not be computed, as every group finds what it needs of them. A group with
   * the drafter's layers looks one block further, where it may, and computes the last one again.
   */
  private foundBlocks(slot: number): number {
    const { transferred, preemptions, input, generatedOffset } = this.table;
    if (!this.finds || transferred[slot] === 1) return 0;
    if (preemptions[slot] === 0 && this.prefixOf(slot) === null) return 0;
    const whole = (input[slot] + generatedOffset[slot]) >> this.blockShift;
    return this.longestFound(this.mostFound(slot), whole, (group, at) => this.findBlock(slot, group, at));
  }

  /** The most of the first `most` blocks, of `whole` ones, of which all groups find what they need. */
  private longestFound(most: number, whole: number, find: FindBlock): number {
    const recomputed = new Set<KvLayers>();
    let inFull = Number.POSITIVE_INFINITY;
    let found = most;
    for (let before = -1; found !== before; ) {
      before = found;
      for (const layers of this.layers) {
        const recomputes = this.recomputesLastBlock && layers.drafts && !recomputed.has(layers);
        const isFull = isFullAttention(layers.attention);
        if (isFull && inFull < Number.POSITIVE_INFINITY) {
          found = Math.min(found, inFull);
          continue;
        }
        const reach = recomputes && this.groups.length > 1 ? Math.min(found + 1, whole) : found;
        const end = this.foundIn(layers, reach, recomputes ? 1 : 0, find);
        if (recomputes) recomputed.add(layers);
        else if (end < found) recomputed.clear();
        found = end;
        if (isFull) inFull = end;
      }
      found = Math.min(found, before);
    }
    return found;
  }

  /** The most of the first `most` blocks of which groups find what they attend to, but for the last `dropped`. */
  private foundIn({ attention, groups }: KvLayers, most: number, dropped: number, find: FindBlock): number {
    const finds = (at: number) => groups.every((group) => find(group, at) !== undefined);
    const { window } = attention;
    let end = window === undefined ? this.skippedBlocks(most * this.blockTokens, attention) : most;
    if (window === undefined) {
      while (end < most && finds(end)) end++;
    } else {
      const enough = this.blocksFor(window - 1) + dropped;
      for (let at = most - 1; at >= 0 && end - at <= enough; at--) if (!finds(at)) end = at;
    }
    return Math.max(0, end - dropped);
  }

  /** The block with the content of a request's block `at`. */
  private findBlock(slot: number, group: number, at: number): NamedBlock | undefined {
    return this.blockOf(group, this.contentOf(slot, at));
  }

  private blockOf(
    group: number,
    [key, place]: readonly [key: number, place: number],
  ): NamedBlock | undefined {
    return this.named[group].get(key)?.[place]?.[0];
  }

  private name(slot: number, group: number, at: number): NamedBlock {
    const [key, place] = this.contentOf(slot, at);
    return this.add(new NamedBlock(group, key, place));
  }

  private add(block: NamedBlock): NamedBlock {
    const chunks = this.named[block.group];
    let chunk = chunks.get(block.key);
    if (chunk === undefined) {
      chunk = [];
      chunks.set(block.key, chunk);
    }
    while (chunk.length <= block.at) chunk.push([]);
    chunk[block.at].push(block);
    return block;
  }

  /** Chunk of a request's block `at`, and the block's place in it: of what is named, or of the request's own content. */
  private contentOf(slot: number, at: number): [key: number, place: number] {
    const named = this.namedEnd(slot);
    if (at >= named) return [this.ownKey(slot), at - named];
    const chunk = this.chunkAt(slot, at);
    return [this.chunkKey(slot, chunk), at - this.chunkStart(slot, chunk)];
  }

  private hold(block: NamedBlock): NamedBlock {
    if (block.holders++ === 0) {
      this.unlink(block);
      this.free--;
    }
    return block;
  }

  /** Frees the blocks from `from` to `end`, the last first. */
  private letGoOf({ named }: HeldBlocks, from: number, end: number): void {
    for (let at = end - 1; at >= from; at--) {
      const block = at < named.length ? named[at] : null;
      if (at < named.length) named[at] = null;
      if (block === null) this.give(1);
      else if (--block.holders === 0) {
        this.append(block);
        this.free++;
      }
    }
  }

  /** The free block that is taken next loses its content. */
  private forgetFirst(): void {
    const block = this.head as NamedBlock;
    this.unlink(block);
    const chunks = this.named[block.group];
    const chunk = chunks.get(block.key) as NamedBlock[][];
    const copies = chunk[block.at];
    copies.splice(copies.indexOf(block), 1);
    while (chunk.length > 0 && chunk[chunk.length - 1].length === 0) chunk.pop();
    if (chunk.length === 0) chunks.delete(block.key);
  }

  private append(block: NamedBlock): void {
    block.prev = this.tail;
    block.next = null;
    if (this.tail === null) this.head = block;
    else this.tail.next = block;
    this.tail = block;
  }

  private unlink(block: NamedBlock): void {
    if (block.prev === null) this.head = block.next;
    else block.prev.next = block.next;
    if (block.next === null) this.tail = block.prev;
    else block.next.prev = block.prev;
  }
}

export interface GroupedBlocksSnapshot {
  readonly empty: number;
  readonly blocks: readonly (readonly [group: number, key: number, at: number, holders: number])[];
  /** Places of the free blocks in `blocks`, the next to be taken first. */
  readonly queue: readonly number[];
  /** By slot and group. */
  readonly held: readonly (readonly {
    readonly named: readonly (number | null)[];
    readonly skipped: number;
  }[])[];
}
