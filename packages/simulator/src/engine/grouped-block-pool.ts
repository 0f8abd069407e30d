import { BlockPool } from './block-pool.ts';
import { FreeQueue } from './free-queue.ts';
import type { PromptPrefix } from './prefix-cache.ts';
import type { RequestTable } from './request-table.ts';
import { enlarged } from './slot-buffer.ts';

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

/** A block with content that has a name, which running requests hold, or which is free and found until it is taken. */
export class NamedBlock {
  holders = 1;
  /** Its entry in the queue of free blocks, while nobody holds it. */
  entry = 0;
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

/** Blocks of a running request in one group that have a name: from its first on, `null` behind the window. */
type Names = (NamedBlock | null)[];

/**
 * The KV blocks of an engine whose layers form groups, each with a block table of its own over one pool (vLLM's hybrid KV
 * cache groups). A group with a sliding window or chunks frees the blocks that lie behind them, and
 * needs no more than theirs to find a prefix; a prefix counts as found where every group finds it. Free blocks
 * without content are taken first, then the others in the order in which they became free.
 *
 * What only a request itself can ask for gets a name when the request is preempted: until then its blocks are numbers.
 */
export class GroupedBlockPool extends BlockPool {
  declare private readonly groups: readonly KvGroup[];
  /** Groups with a window or chunks: neighbours with equal attention, which free equal blocks, are one span. */
  declare private readonly spans: readonly (readonly number[])[];
  /** Span of each group; -1 with full attention. */
  declare private readonly spanOf: readonly number[];
  /** Groups with equal attention, those with full attention first. */
  declare private readonly layers: readonly KvLayers[];
  /** Most blocks of a group that a waiting request has to find free: those of a window and of the iterations under way. */
  declare private readonly mostBlocks: readonly number[];
  declare private readonly finds: boolean;
  declare private empty: number;
  declare private readonly queue: FreeQueue;
  /** Blocks by group, chunk and place in it; of equal ones the first that was filled first. */
  declare private readonly named: readonly Map<number, NamedBlock[][]>[];
  /** Blocks with a name of running requests, by slot and group. */
  private names: (Names[] | undefined)[] = [];
  /** Blocks behind the window, which are free again: entry `slot * spans + span`. */
  private skipped = new Int32Array(0);
  declare readonly slides: readonly number[];
  declare readonly mostFreed: number;

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
    const local = [...groups.keys()].filter((group) => !isFullAttention(groups[group]));
    const kinds = groups.map((group) => JSON.stringify(group));
    const spans: number[][] = [];
    for (const group of local) {
      const last = spans.at(-1);
      if (last !== undefined && kinds[last[0]] === kinds[group]) last.push(group);
      else spans.push([group]);
    }
    this.spans = spans;
    this.spanOf = groups.map((_, group) => spans.findIndex((span) => span.includes(group)));
    const hasFull = groups.some(isFullAttention);
    this.layers = [...new Set(kinds)]
      .map((kind) => {
        const attention = groups[kinds.indexOf(kind)];
        const alike = [...groups.keys()].filter((at) => kinds[at] === kind);
        return { attention, groups: alike, drafts: isFullAttention(attention) || !hasFull };
      })
      .sort((a, b) => Number(isFullAttention(b.attention)) - Number(isFullAttention(a.attention)));
    this.mostBlocks = groups.map(({ window, chunk }) => {
      if (window !== undefined) return this.blocksFor(window - 1 + tokensUnderWay) + 1;
      return chunk === undefined ? Number.POSITIVE_INFINITY : this.blocksFor(chunk + tokensUnderWay);
    });
    const behind = local.map((group) => ((groups[group].window ?? 1) - 1) & (blockTokens - 1));
    this.slides = [...new Set(behind)];
    this.mostFreed = local.reduce((sum, group) => sum + this.blocksFor(groups[group].chunk ?? 1), 0);
    this.queue = new FreeQueue((this.blocksFor(tokensUnderWay) + 2) * groups.length, (block) =>
      this.forget(block),
    );
    this.finds = prefixCaching;
    this.empty = blocks;
    this.named = groups.map(() => new Map());
  }

  override get caches(): boolean {
    return this.finds;
  }

  override get groupCount(): number {
    return this.groups.length;
  }

  override tokensIn(blocks: number): number {
    return tokensIn(blocks, this.blockTokens, this.groups);
  }

  override blocksOfRequest(tokens: number): number {
    const blocks = this.blocksFor(tokens);
    let most = 0;
    for (const each of this.mostBlocks) most += Math.min(blocks, each);
    return most;
  }

  override heldBy(slot: number, blocks: number): number {
    let held = blocks * this.groups.length;
    for (const [span, groups] of this.spans.entries()) {
      held -= this.skipped[slot * this.spans.length + span] * groups.length;
    }
    return held;
  }

  /** Blocks of a running request in one group that lie behind the window and are free again. */
  private skippedOf(slot: number, group: number): number {
    const span = this.spanOf[group];
    return span < 0 ? 0 : this.skipped[slot * this.spans.length + span];
  }

  override take(blocks: number): void {
    this.free -= blocks;
    const empty = Math.min(this.empty, blocks);
    this.empty -= empty;
    if (blocks > empty) this.queue.take(blocks - empty);
  }

  override give(blocks: number): void {
    this.free += blocks;
    this.empty += blocks;
  }

  override clearCache(): void {
    const { free } = this;
    this.take(free);
    this.give(free);
  }

  override skip(slot: number, settled: number): void {
    const { spans, skipped, groups } = this;
    for (let span = 0; span < spans.length; span++) {
      const at = slot * spans.length + span;
      const end = this.skippedBlocks(settled, groups[spans[span][0]]);
      if (end <= skipped[at]) continue;
      this.freeBehind(slot, span, skipped[at], end);
      skipped[at] = end;
    }
  }

  override needed(slot: number, most: number, beyond: number): number {
    const known = this.table.input[slot] + this.table.generatedOffset[slot];
    const found = this.foundBlocks(slot);
    const blocks = this.blocksFor(Math.min(known, found * this.blockTokens + most) + beyond);
    if (found === 0) return blocks * this.groups.length;
    return this.neededBeside(slot, found, () => blocks);
  }

  override neededForWhole(slot: number): number {
    const known = this.table.input[slot] + this.table.generatedOffset[slot];
    const found = this.foundBlocks(slot);
    if (found === 0) return this.blocksOfRequest(known);
    const blocks = this.blocksFor(known);
    return this.neededBeside(slot, found, (group) => Math.min(blocks, this.mostBlocks[group]));
  }

  /** Free blocks that a waiting request takes for a table of so many blocks in each group, of which it finds `found`. */
  private neededBeside(slot: number, found: number, blocksOf: (group: number) => number): number {
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
    const { table, groups, spans } = this;
    table.namedBlocks[slot] = 0;
    table.ownBlocks[slot] = 0;
    const found = this.foundBlocks(slot);
    if ((slot + 1) * spans.length > this.skipped.length)
      this.skipped = enlarged(this.skipped, table.capacity * spans.length);
    const isTransferred = table.transferred[slot] === 1;
    const computed = isTransferred
      ? table.input[slot] + table.generatedOffset[slot] - 1
      : found * this.blockTokens;
    for (let span = 0; span < spans.length; span++) {
      const skipped = this.skippedBlocks(computed, groups[spans[span][0]]);
      this.skipped[slot * spans.length + span] = skipped;
      // Its block table gets no blocks for what lies behind the windows.
      if (isTransferred) this.give(skipped * spans[span].length);
    }
    this.names[slot] =
      found === 0 ? undefined : groups.map((_, group) => this.holdBlocks(slot, group, found));
    table.blocks[slot] = found;
    return found * this.blockTokens;
  }

  private holdBlocks(slot: number, group: number, found: number): Names {
    const skipped = this.skippedOf(slot, group);
    const names: Names = new Array(skipped).fill(null);
    for (let at = skipped; at < found; at++) {
      const block = this.findBlock(slot, group, at) as NamedBlock;
      if (block.holders++ === 0) {
        this.queue.remove(block);
        this.free--;
      }
      names.push(block);
    }
    return names;
  }

  override fill(slot: number, tokens: number): void {
    if (!this.finds || this.prefixOf(slot) === null || this.table.transferred[slot] === 1) return;
    this.nameUpTo(slot, Math.min(tokens >> this.blockShift, this.namedEnd(slot)));
  }

  /** Gives a name to the blocks of a running request up to `end`, those behind the window left out. */
  private nameUpTo(slot: number, end: number): void {
    const names = this.names[slot];
    // The groups have equally many, and most iterations fill none.
    if (end <= (names === undefined ? 0 : names[0].length)) return;
    const all = names ?? this.groups.map((): Names => []);
    this.names[slot] = all;
    for (const [group, of] of all.entries()) {
      const skipped = this.skippedOf(slot, group);
      for (let at = of.length; at < end; at++) {
        of.push(at < skipped ? null : this.add(new NamedBlock(group, ...this.contentOf(slot, at))));
      }
    }
  }

  override release(slot: number, blocks: number, computed: number, returns: boolean): void {
    this.fill(slot, computed);
    const full = this.finds && this.table.transferred[slot] === 0 ? computed >> this.blockShift : 0;
    if (returns && full > 0) {
      this.nameUpTo(slot, full);
      this.nameFreed(slot);
    }
    for (let group = 0; group < this.groups.length; group++) {
      const skipped = this.skippedOf(slot, group);
      const named = this.names[slot]?.[group].length ?? 0;
      const own = Math.max(skipped, named, full);
      this.give(blocks - own);
      // Nobody asks for what a request alone could ask for.
      const forgotten = own - Math.max(skipped, named);
      this.queue.appendForgotten(forgotten);
      this.free += forgotten;
      if (skipped < named) this.letGoOf(slot, group, skipped, named);
    }
    this.names[slot] = undefined;
  }

  override snapshot() {
    const blocks = this.named.flatMap((chunks) => [...chunks.values()].flatMap((chunk) => chunk.flat()));
    const places = new Map(blocks.map((block, place) => [block, place]));
    const placeOf = (block: NamedBlock) => places.get(block) as number;
    return {
      ...super.snapshot(),
      grouped: {
        empty: this.empty,
        blocks: blocks.map(({ group, key, at, holders }) => [group, key, at, holders] as const),
        queue: this.queue.snapshot(placeOf),
        names: this.names.map((names) => names?.map((of) => of.map((block) => block && placeOf(block)))),
        skipped: this.skipped.slice(),
      },
    };
  }

  override restore({ grouped, ...pool }: ReturnType<GroupedBlockPool['snapshot']>): void {
    super.restore(pool);
    const { empty, blocks, queue, names, skipped } = grouped;
    this.empty = empty;
    for (const chunks of this.named) chunks.clear();
    const restored = blocks.map(([group, key, at, holders]) => {
      const block = this.add(new NamedBlock(group, key, at));
      block.holders = holders;
      return block;
    });
    this.queue.restore(queue, (place) => restored[place]);
    this.names = names.map((held) =>
      held?.map((of) => of.map((place) => (place === null ? null : restored[place]))),
    );
    this.skipped = skipped.slice();
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

  private findBlock(slot: number, group: number, at: number): NamedBlock | undefined {
    return this.blockOf(group, this.contentOf(slot, at));
  }

  private blockOf(
    group: number,
    [key, place]: readonly [key: number, place: number],
  ): NamedBlock | undefined {
    return this.named[group].get(key)?.[place]?.[0];
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

  /** Frees the blocks of a running request from `from` to `end` that lie behind the windows of a span. */
  private freeBehind(slot: number, span: number, from: number, end: number): void {
    const groups = this.spans[span];
    // Nobody asks for the blocks of a request whose content has no name, but the request itself.
    if (
      this.finds &&
      this.names[slot] === undefined &&
      this.table.transferred[slot] + this.namedEnd(slot) === 0
    ) {
      this.queue.appendOwn(this.ownKey(slot), span, groups.length, from, end);
      this.free += groups.length * (end - from);
      return;
    }
    for (let i = 0; i < groups.length; i++) this.letGoOf(slot, groups[i], from, end);
  }

  /** Frees the full blocks of a running request from `from` to `end`, the last first. */
  private letGoOf(slot: number, group: number, from: number, end: number): void {
    const names = this.names[slot]?.[group];
    const named = names === undefined ? 0 : names.length;
    // What came from another engine has no name before the request has decoded here.
    const own = this.finds && this.table.transferred[slot] === 0 ? this.namedEnd(slot) : end;
    for (let at = end - 1; at >= from; at--) {
      if (at < named) {
        const block = (names as Names)[at] as NamedBlock;
        (names as Names)[at] = null;
        if (--block.holders > 0) continue;
        this.queue.appendNamed(block);
      } else if (at < own) {
        this.empty++;
      } else {
        this.queue.appendOwn(this.ownKey(slot), -1 - group, 1, at, at + 1);
      }
      this.free++;
    }
  }

  /** Gives a name to the blocks that a request freed behind its windows, as far as they have not been taken. */
  private nameFreed(slot: number): void {
    const named = this.namedEnd(slot);
    const key = this.ownKey(slot);
    const name = (group: number, at: number) => {
      const block = new NamedBlock(group, key, at - named);
      block.holders = 0;
      return this.add(block);
    };
    // A group alone has a negative number.
    this.queue.nameOwn(key, name, (span) => (span < 0 ? [-1 - span] : this.spans[span]));
  }

  private forget(block: NamedBlock): void {
    const chunks = this.named[block.group];
    const chunk = chunks.get(block.key) as NamedBlock[][];
    const copies = chunk[block.at];
    copies.splice(copies.indexOf(block), 1);
    while (chunk.length > 0 && chunk[chunk.length - 1].length === 0) chunk.pop();
    if (chunk.length === 0) chunks.delete(block.key);
  }
}
