import { type BlockRun, PrefixCache, type PrefixCacheSnapshot, type PromptPrefix } from './prefix-cache.ts';
import type { RequestTable } from './request-table.ts';

/** What admitting a request takes. */
export interface AdmissionCost {
  /** Free blocks to take beyond those that are cached. */
  needed: number;
  /** Cached blocks, free until now, that the request would hold. */
  revived: number;
  /** Tokens whose KV is cached. */
  cachedTokens: number;
}

/**
 * The KV blocks of an engine. Without a prefix cache they are a number; with one, free blocks keep their content until
 * they are taken, and a request that is admitted finds the longest prefix of its prompt that is still there.
 */
export class BlockPool {
  declare free: number;
  declare private readonly cache: PrefixCache | null;
  declare private readonly table: RequestTable;
  declare private readonly blockTokens: number;
  /** Binary logarithm of the block size. */
  declare private readonly blockShift: number;
  /** Prompt content of each slot. */
  private readonly prefixes: (PromptPrefix | null)[] = [];
  private readonly cost: AdmissionCost = { needed: 0, revived: 0, cachedTokens: 0 };

  constructor(table: RequestTable, blocks: number, blockTokens: number, prefixCaching: boolean) {
    this.table = table;
    this.free = blocks;
    this.blockTokens = blockTokens;
    this.blockShift = Math.log2(blockTokens);
    this.cache = prefixCaching ? new PrefixCache() : null;
    this.cache?.reset(blocks);
  }

  /** KV blocks that hold `tokens`. */
  blocksFor(tokens: number): number {
    return (tokens + this.blockTokens - 1) >> this.blockShift;
  }

  /** Remembers the prompt content of a new request. */
  setPrefix(slot: number, prefix: PromptPrefix | null): void {
    if (prefix === null && slot >= this.prefixes.length) return;
    while (this.prefixes.length < slot) this.prefixes.push(null);
    this.prefixes[slot] = prefix;
  }

  prefixOf(slot: number): PromptPrefix | null {
    return this.prefixes[slot] ?? null;
  }

  /** Takes `blocks` of the free blocks. */
  take(blocks: number): void {
    this.free -= blocks;
    this.cache?.take(blocks);
  }

  /** Frees blocks whose content nobody will ask for. */
  give(blocks: number): void {
    this.free += blocks;
    this.cache?.freeEmpty(blocks);
  }

  /** All blocks that are free lose their content. */
  clearCache(): void {
    this.cache?.reset(this.free);
  }

  /** What it takes to admit a waiting request of which something may be cached. Reused object. */
  private admissionCost(slot: number, cache: PrefixCache): AdmissionCost {
    const total = this.table.input[slot] + this.table.generatedOffset[slot];
    const cost = this.cost;
    cost.revived = 0;
    let cached = 0;
    let prefixBlocks = 0;
    let unbroken = true;
    for (let c = 0, blocks = this.chunkBlocks(slot, 0); blocks > 0; blocks = this.chunkBlocks(slot, ++c)) {
      const run = cache.find(this.chunkKey(slot, c));
      if (run === undefined || !(unbroken || run.holders > 0)) {
        unbroken = false;
        continue;
      }
      if (run.holders === 0) cost.revived += run.blocks;
      if (unbroken) prefixBlocks += run.blocks;
      cached += run.blocks;
      unbroken = unbroken && run.blocks === blocks;
    }
    const own = unbroken ? this.ownRun(slot, cache) : undefined;
    if (own !== undefined) {
      cached += own.blocks;
      prefixBlocks += own.blocks;
      cost.revived += own.blocks;
    }
    cost.needed = this.blocksFor(total) - cached;
    // The last token is always computed: its logits are wanted.
    cost.cachedTokens = Math.min(
      prefixBlocks * this.blockTokens,
      Math.floor((total - 1) / this.blockTokens) * this.blockTokens,
    );
    return cost;
  }

  /** Whether the free blocks suffice to admit a waiting request. */
  fits(slot: number): boolean {
    const cache = this.cacheFor(slot);
    if (cache === null) return this.promptBlocks(slot) <= this.free;
    const { needed, revived } = this.admissionCost(slot, cache);
    return needed + revived <= this.free;
  }

  /**
   * Lets a waiting request run if the free blocks hold its prompt and what it had generated before. It takes them chunk
   * by chunk, but all at once where something may be cached. Answers the tokens whose KV is there already, or -1 when
   * the free blocks do not suffice.
   */
  admit(slot: number): number {
    if (!this.fits(slot)) return -1;
    this.table.blocks[slot] = 0;
    this.table.sharedBlocks[slot] = 0;
    const cache = this.cacheFor(slot);
    if (cache === null) return 0;
    this.table.blocks[slot] = this.promptBlocks(slot);
    const { needed, cachedTokens } = this.admissionCost(slot, cache);
    this.holdPrefix(slot, cache);
    this.take(needed);
    return cachedTokens;
  }

  /**
   * Takes back the blocks of a request. What it had computed stays cached until the blocks are taken.
   * @param held blocks it holds
   * @param computed tokens of it that have KV
   * @param returns whether the request will be admitted again, so that what only it can use is worth keeping
   */
  release(slot: number, held: number, computed: number, returns: boolean): void {
    this.free += held;
    if (this.cache === null) return;
    const shared = this.table.sharedBlocks[slot];
    const own = held - shared;
    if (!returns && shared === 0) this.cache.freeEmpty(own);
    else this.releaseCached(slot, this.cache, own, computed, returns);
  }

  /** A request that waits will not be admitted here any more. */
  forget(slot: number): void {
    if (this.cache === null) return;
    this.cache.forget(this.privateKey(slot));
  }

  snapshot(): BlockPoolSnapshot {
    return { free: this.free, cache: this.cache?.snapshot() ?? null, prefixes: this.prefixes.slice() };
  }

  restore(snapshot: BlockPoolSnapshot): void {
    this.free = snapshot.free;
    this.prefixes.length = 0;
    this.prefixes.push(...snapshot.prefixes);
    if (this.cache !== null && snapshot.cache !== null) this.cache.restore(snapshot.cache);
  }

  /** Frees blocks of which some are worth keeping: `own` that it shares with nobody, and those of its prompt's chunks. */
  private releaseCached(
    slot: number,
    cache: PrefixCache,
    own: number,
    computed: number,
    returns: boolean,
  ): void {
    const shared = this.table.sharedBlocks[slot];
    // Transferred KV is not cached by chunk, so what it leaves behind does not continue a chain.
    const reusable = returns && shared === this.chainBlocks(slot);
    const kept = reusable ? Math.min(own, Math.max(0, Math.floor(computed / this.blockTokens) - shared)) : 0;
    cache.freeEmpty(own - kept);
    cache.insertFree(this.privateKey(slot), kept);
    this.free -= shared;
    this.table.sharedBlocks[slot] = 0;
    if (shared > 0) this.releasePrefix(slot, cache, computed);
  }

  /** Blocks of a waiting request's prompt and what it had generated before. */
  private promptBlocks(slot: number): number {
    return this.blocksFor(this.table.input[slot] + this.table.generatedOffset[slot]);
  }

  /** The cache, when a waiting request has KV to look for: a prompt that others may share, or what a preemption left. */
  private cacheFor(slot: number): PrefixCache | null {
    const { transferred, preemptions } = this.table;
    if (this.cache === null || transferred[slot] === 1) return null;
    return preemptions[slot] > 0 || this.prefixOf(slot) !== null ? this.cache : null;
  }

  /** Holds what is cached of the prompt, and caches the rest of its chunks, which are computed from now on. */
  private holdPrefix(slot: number, cache: PrefixCache): void {
    let unbroken = true;
    for (let c = 0, blocks = this.chunkBlocks(slot, 0); blocks > 0; blocks = this.chunkBlocks(slot, ++c)) {
      const key = this.chunkKey(slot, c);
      const run = cache.find(key);
      if (run !== undefined && (unbroken || run.holders > 0)) {
        unbroken = unbroken && run.blocks === blocks;
        this.free -= cache.hold(run);
        run.blocks = blocks;
      } else {
        unbroken = false;
        // A copy behind a gap in the chain cannot be found: the new one takes its place.
        cache.forget(key);
        cache.insertHeld(key, blocks);
      }
      this.table.sharedBlocks[slot] += blocks;
    }
    const own = this.ownRun(slot, cache);
    if (own === undefined) return;
    if (unbroken) {
      this.free -= cache.hold(own);
      cache.discard(own);
    } else {
      cache.forget(this.privateKey(slot));
    }
  }

  /** What a request left behind when it was preempted. */
  private ownRun(slot: number, cache: PrefixCache): BlockRun | undefined {
    return this.table.preemptions[slot] === 0 ? undefined : cache.find(this.privateKey(slot));
  }

  /** Lets go of a prompt's chunks, the last one first; of those it alone holds, only what is computed stays cached. */
  private releasePrefix(slot: number, cache: PrefixCache, computed: number): void {
    const prefix = this.prefixes[slot] as PromptPrefix;
    let end = 0;
    while (this.chunkBlocks(slot, end) > 0) end++;
    for (let c = end - 1; c >= 0; c--) {
      const run = cache.find(this.chunkKey(slot, c)) as BlockRun;
      const done = Math.floor((computed - c * prefix.chunkTokens) / this.blockTokens);
      if (run.holders === 1 && done < run.blocks) {
        const kept = Math.max(0, done);
        this.free += run.blocks - kept;
        cache.freeEmpty(run.blocks - kept);
        run.blocks = kept;
      }
      if (run.blocks === 0) cache.discard(run);
      else this.free += cache.release(run);
    }
  }

  /** Whole KV blocks of the prompt's chunk `c`; 0 behind the last. */
  private chunkBlocks(slot: number, c: number): number {
    const prefix = this.prefixOf(slot);
    if (prefix === null || c >= prefix.ids.length) return 0;
    const tokens = Math.min(prefix.chunkTokens, this.table.input[slot] - c * prefix.chunkTokens);
    return Math.max(0, Math.floor(tokens / this.blockTokens));
  }

  /** Blocks of all of the prompt's chunks. */
  private chainBlocks(slot: number): number {
    let sum = 0;
    for (let c = 0, blocks = this.chunkBlocks(slot, 0); blocks > 0; blocks = this.chunkBlocks(slot, ++c))
      sum += blocks;
    return sum;
  }

  private chunkKey(slot: number, c: number): number {
    return (this.prefixes[slot] as PromptPrefix).ids[c];
  }

  /** Key of what no other request shares: negative, where chunk ids are not. */
  private privateKey(slot: number): number {
    return -1 - this.table.order[slot];
  }
}

export interface BlockPoolSnapshot {
  readonly free: number;
  readonly cache: PrefixCacheSnapshot | null;
  readonly prefixes: readonly (PromptPrefix | null)[];
}
