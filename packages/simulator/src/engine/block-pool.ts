import { HostCache } from './host-cache.ts';
import { PrefixCache, type PromptPrefix } from './prefix-cache.ts';
import type { RequestTable } from './request-table.ts';
import type { SlotList } from './slot-list.ts';

/** More than any request has. A small integer, which compiled code compares faster than Infinity. */
export const ALL_TOKENS = 2 ** 30 - 1;

/** Content of a request whose KV another engine computed: nobody finds it. */
const UNNAMED = -1;

/**
 * The KV blocks of an engine. Without a prefix cache they are a number; with one, blocks keep their content until they are
 * taken, and a request that is admitted finds the longest prefix of its tokens that is there. What a running request
 * fills is found by others from the iteration on that computes it. What is computed of prompts may be copied to the memory of
 * the host, and is loaded from there where the pool has it no longer.
 */
export class BlockPool {
  declare free: number;
  /**
   * Of layers with windows, tokens modulo the block size between the last token and the first that it does not attend to; no two
   * equal. Most blocks that a token frees.
   */
  readonly slides: readonly number[] = [];
  readonly mostFreed: number = 0;
  /** Whether requests were submitted whose answers have a name, so that others may find them. */
  namesAnswers = false;
  /** Whether a request computes the last block that it finds again, as a drafter wants the states of its tokens. */
  recomputesLastBlock = false;
  declare private readonly cache: PrefixCache | null;
  declare private readonly host: HostCache | null;
  declare protected readonly table: RequestTable;
  declare protected readonly blockTokens: number;
  declare protected readonly blockShift: number;
  private prefixes: (PromptPrefix | null)[] = [];
  /** Of a request that waits, blocks that can be found: those with a name, and those that only it can ask for. */
  private readonly hits = {
    named: 0,
    own: 0,
    /** Of these, blocks that a running request holds. */
    held: 0,
    /** Blocks behind them that the host has. */
    loaded: 0,
  };

  /** @param hostBlocks Blocks that the memory of the host holds copies of; 0 without a prefix cache. */
  constructor(
    table: RequestTable,
    blocks: number,
    blockTokens: number,
    prefixCaching: boolean,
    hostBlocks: number,
  ) {
    this.table = table;
    this.free = blocks;
    this.blockTokens = blockTokens;
    this.blockShift = 31 - Math.clz32(blockTokens);
    this.cache = prefixCaching ? new PrefixCache() : null;
    this.cache?.reset(blocks);
    this.host = prefixCaching && hostBlocks > 0 ? new HostCache(hostBlocks) : null;
  }

  get caches(): boolean {
    return this.cache !== null;
  }

  blocksFor(tokens: number): number {
    return (tokens + this.blockTokens - 1) >> this.blockShift;
  }

  /** Groups of layers, each of which takes a block for each of the block table. */
  get groupCount(): number {
    return 1;
  }

  /** Tokens of long sequences that `blocks` hold. */
  tokensIn(blocks: number): number {
    return blocks * this.blockTokens;
  }

  /** Most KV blocks that a request of so many tokens holds at once. */
  blocksOfRequest(tokens: number): number {
    return this.blocksFor(tokens);
  }

  /** Free blocks that a running request lacks for `tokens`. */
  missing(slot: number, tokens: number): number {
    return (this.blocksFor(tokens) - this.table.blocks[slot]) * this.groupCount;
  }

  /** Lets a running request have a block table of `blocks`. */
  resize(slot: number, blocks: number): void {
    const more = (blocks - this.table.blocks[slot]) * this.groupCount;
    if (more > 0) this.take(more);
    else this.give(-more);
    this.table.blocks[slot] = blocks;
  }

  /** Blocks of the pool that a running request holds, whose block table has so many. */
  heldBy(_slot: number, blocks: number): number {
    return blocks;
  }

  /** Frees what lies behind the sliding windows of a running request, of whose tokens the first `settled` are known to be computed. */
  skip(_slot: number, _settled: number): void {}

  setPrefix(slot: number, prefix: PromptPrefix | null): void {
    if (prefix === null && slot >= this.prefixes.length) return;
    while (this.prefixes.length < slot) this.prefixes.push(null);
    this.prefixes[slot] = prefix;
    if ((prefix?.namedTokens ?? 0) > this.table.input[slot]) this.namesAnswers = true;
  }

  prefixOf(slot: number): PromptPrefix | null {
    return slot < this.prefixes.length ? this.prefixes[slot] : null;
  }

  take(blocks: number): void {
    this.free -= blocks;
    this.cache?.take(blocks);
  }

  /** Frees blocks without content. */
  give(blocks: number): void {
    this.free += blocks;
    this.cache?.freeEmpty(blocks);
  }

  /** All blocks that are free lose their content, and those on the host. */
  clearCache(): void {
    this.cache?.reset(this.free);
    this.host?.clear();
  }

  /**
   * Free blocks that a waiting request needs for its prompt and what it had generated before, or for the first `most` tokens of
   * it that are not cached, and `beyond` slots behind them.
   */
  needed(slot: number, most: number, beyond: number): number {
    const known = this.table.input[slot] + this.table.generatedOffset[slot];
    const cache = this.cacheFor(slot);
    if (cache === null) return this.blocksFor(Math.min(known, most) + beyond);
    const { named, own, held, loaded } = this.find(slot, cache);
    const reach = Math.min(known, (named + own + loaded) * this.blockTokens + most);
    return this.blocksFor(reach + beyond) - held;
  }

  /** Free blocks that a waiting request needs for all of its prompt and what it had generated before. */
  neededForWhole(slot: number): number {
    return this.needed(slot, ALL_TOKENS, 0);
  }

  /** Tokens of a waiting request that are cached, those on the host included. */
  cachedTokens(slot: number): number {
    const cache = this.cacheFor(slot);
    if (cache === null) return 0;
    const { named, own, loaded } = this.find(slot, cache);
    return (named + own + loaded) * this.blockTokens;
  }

  /** Tokens of the request admitted last whose KV is loaded from the host. */
  get loadedTokens(): number {
    return this.hits.loaded * this.blockTokens;
  }

  /** Whether a running request may fill with its answer the first block that a waiting request does not find. */
  mayFindMore(slot: number, running: SlotList): boolean {
    const cache = this.cacheFor(slot);
    if (cache === null || this.prefixOf(slot) === null) return false;
    const { named } = this.findUpTo(slot, cache, this.mostFound(slot));
    const c = this.chunkAt(slot, named);
    if (this.chunkEnd(slot, c) <= named) return false;
    const key = this.chunkKey(slot, c);
    const { next, input } = this.table;
    for (let other = running.head; other >= 0; other = next[other]) {
      const tokens = this.prefixOf(other)?.namedTokens ?? 0;
      if (tokens <= input[other] || tokens < (named + 1) * this.blockTokens) continue;
      const at = this.chunkAt(other, named);
      if (this.chunkEnd(other, at) > named && this.chunkKey(other, at) === key) return true;
    }
    return false;
  }

  /** Lets a waiting request that fits hold what is cached of it. Answers the tokens whose KV is there already. */
  admit(slot: number): number {
    const { table } = this;
    const cache = this.cacheFor(slot);
    table.blocks[slot] = 0;
    table.namedBlocks[slot] = table.transferred[slot] === 1 ? UNNAMED : 0;
    table.ownBlocks[slot] = 0;
    this.hits.loaded = 0;
    return cache === null ? 0 : this.holdFound(slot, cache);
  }

  private holdFound(slot: number, cache: PrefixCache): number {
    const { table } = this;
    const { named, own } = this.find(slot, cache);
    let revived = own === 0 ? 0 : cache.hold(this.ownKey(slot), own);
    for (let c = 0, from = 0; from < named; c++) {
      const end = Math.min(named, this.chunkEnd(slot, c));
      revived += cache.hold(this.chunkKey(slot, c), end - from);
      from = end;
    }
    this.free -= revived;
    table.namedBlocks[slot] = named;
    table.ownBlocks[slot] = own;
    table.blocks[slot] = named + own;
    return (named + own) * this.blockTokens;
  }

  /** Blocks of a running request that others can find once they are filled, from its first on. */
  nameable(slot: number): number {
    return this.table.namedBlocks[slot] === UNNAMED ? 0 : this.namedEnd(slot);
  }

  /** Copies what is computed of a prompt, up to `tokens`, to the host. All of it counts as used. */
  store(slot: number, tokens: number): void {
    const { host } = this;
    if (host === null) return;
    const full = Math.min(tokens, this.table.input[slot]) >> this.blockShift;
    let from = 0;
    for (let c = 0; from < full; c++) {
      const end = Math.min(full, this.chunkEnd(slot, c));
      if (end <= from) break;
      host.keep(this.chunkKey(slot, c), end - from);
      from = end;
    }
    if (from < full) host.keep(this.ownKey(slot), full - from);
    host.letGo();
  }

  /** A running request has filled the blocks of its first `tokens`: others can find those that have a name. */
  fill(slot: number, tokens: number): void {
    if (this.cache !== null && this.prefixOf(slot) !== null) this.fillNamed(slot, this.cache, tokens);
  }

  private fillNamed(slot: number, cache: PrefixCache, tokens: number): void {
    const { namedBlocks } = this.table;
    const full = tokens >> this.blockShift;
    let filled = namedBlocks[slot];
    if (filled === UNNAMED || filled >= full) return;
    for (let c = this.chunkAt(slot, filled); filled < full; c++) {
      const end = Math.min(full, this.chunkEnd(slot, c));
      if (end <= filled) break;
      const start = this.chunkStart(slot, c);
      cache.fill(slot, this.chunkKey(slot, c), filled - start, end - start);
      filled = end;
    }
    namedBlocks[slot] = filled;
  }

  /**
   * Takes back the blocks of a request. What it had filled stays cached until the blocks are taken.
   * @param held blocks it holds
   * @param computed tokens of it that have KV, those of the iteration under way included
   * @param returns whether the request will be admitted again, and may ask for what only it can ask for
   */
  release(slot: number, held: number, computed: number, returns: boolean): void {
    if (this.cache === null) {
      this.free += held;
      return;
    }
    const full = computed >> this.blockShift;
    this.give(held - full);
    if (returns || this.table.ownBlocks[slot] > 0 || this.prefixOf(slot) !== null) {
      this.releaseFilled(slot, this.cache, computed, returns);
      return;
    }
    this.cache.freeForgotten(full);
    this.free += full;
  }

  /** Takes back the blocks that a request has filled, of which some may be asked for again. */
  private releaseFilled(slot: number, cache: PrefixCache, computed: number, returns: boolean): void {
    const { namedBlocks, ownBlocks } = this.table;
    this.fill(slot, computed);
    const named = Math.max(0, namedBlocks[slot]);
    const own = (computed >> this.blockShift) - named;
    if (own > 0) this.free += this.releaseOwn(slot, cache, own, returns && namedBlocks[slot] !== UNNAMED);
    ownBlocks[slot] = 0;
    if (named > 0) this.free += this.releaseNamed(slot, cache, named);
    namedBlocks[slot] = 0;
  }

  snapshot() {
    const { free, namesAnswers, cache, host, prefixes } = this;
    return {
      ...{ free, namesAnswers, prefixes: prefixes.slice() },
      ...{ cache: cache?.snapshot() ?? null, host: host?.snapshot() ?? null },
    };
  }

  restore({ free, namesAnswers, prefixes, cache, host }: BlockPoolSnapshot): void {
    this.free = free;
    this.namesAnswers = namesAnswers;
    this.prefixes = prefixes.slice();
    if (cache !== null) this.cache?.restore(cache);
    if (host !== null) this.host?.restore(host);
  }

  /** Blocks that a waiting request takes from those found. Reused object. */
  private find(slot: number, cache: PrefixCache) {
    const hits = this.findUpTo(slot, cache, this.mostFound(slot));
    const found = hits.named + hits.own;
    if (this.host !== null) hits.loaded = this.findOnHost(slot, this.host, found) - found;
    if (!this.recomputesLastBlock) return hits;
    if (hits.loaded === 0) return found > 0 ? this.findUpTo(slot, cache, found - 1) : hits;
    hits.loaded--;
    return hits;
  }

  /** Tokens at the start of a prompt that are there now, in the pool or in the memory of the host. */
  heldTokens({ ids, ends, chunkTokens, namedTokens }: PromptPrefix, input: number): number {
    const { cache, host, blockShift } = this;
    const most = Math.min(input - 1, namedTokens ?? input) >> blockShift;
    let at = 0;
    for (let c = 0; cache !== null && c < ids.length && at < most; c++) {
      const end = Math.min(most, (ends === undefined ? (c + 1) * chunkTokens : ends[c]) >> blockShift);
      const found = Math.max(cache.found(ids[c]), host === null ? 0 : host.found(ids[c]));
      if (found < end - at) return (at + found) << blockShift;
      at = end;
    }
    return at << blockShift;
  }

  /** Block of a waiting request up to which the host has those behind the first `from`. */
  private findOnHost(slot: number, host: HostCache, from: number): number {
    const most = this.mostFound(slot);
    const named = Math.min(most, this.namedEnd(slot));
    let at = from;
    for (let c = at < named ? this.chunkAt(slot, at) : 0; at < named; c++) {
      const end = Math.min(named, this.chunkEnd(slot, c));
      at = Math.max(at, Math.min(end, this.chunkStart(slot, c) + host.found(this.chunkKey(slot, c))));
      if (at < end) return at;
    }
    return Math.max(at, Math.min(most, named + host.found(this.ownKey(slot))));
  }

  /** Blocks that a waiting request may find: its last token is always computed, as its logits are wanted. */
  protected mostFound(slot: number): number {
    return (this.table.input[slot] + this.table.generatedOffset[slot] - 1) >> this.blockShift;
  }

  /** Blocks found among the first `most` of a waiting request. Reused object. */
  private findUpTo(slot: number, cache: PrefixCache, most: number) {
    const { preemptions } = this.table;
    const { hits } = this;
    hits.named = 0;
    hits.own = 0;
    hits.held = 0;
    hits.loaded = 0;
    for (let c = 0; ; c++) {
      const blocks = Math.min(this.chunkEnd(slot, c), most) - hits.named;
      if (blocks <= 0) break;
      const key = this.chunkKey(slot, c);
      const found = Math.min(cache.found(key), blocks);
      if (found > 0) hits.held += cache.heldOf(key, found);
      hits.named += found;
      if (found < blocks) return hits;
    }
    if (preemptions[slot] > 0) hits.own = Math.min(cache.found(this.ownKey(slot)), most - hits.named);
    return hits;
  }

  /** Frees blocks with content that no other request can ask for. Answers how many. */
  private releaseOwn(slot: number, cache: PrefixCache, own: number, returns: boolean): number {
    const known = this.table.ownBlocks[slot];
    if (!returns && known === 0) {
      cache.freeForgotten(own);
      return own;
    }
    const key = this.ownKey(slot);
    if (own > known) cache.fill(slot, key, known, own);
    return cache.release(slot, key, own);
  }

  /** Lets go of blocks with a name, the last first. Answers how many are free now. */
  private releaseNamed(slot: number, cache: PrefixCache, named: number): number {
    let freed = 0;
    let end = named;
    for (let c = this.chunkAt(slot, named - 1); c >= 0; c--) {
      const start = this.chunkStart(slot, c);
      freed += cache.release(slot, this.chunkKey(slot, c), end - start);
      end = start;
    }
    return freed;
  }

  /** The cache, when a waiting request has KV to look for: content with a name, or what a preemption left. */
  private cacheFor(slot: number): PrefixCache | null {
    const { transferred, preemptions } = this.table;
    if (this.cache === null || transferred[slot] === 1) return null;
    return preemptions[slot] > 0 || this.prefixOf(slot) !== null ? this.cache : null;
  }

  /** Chunk that block `block` of a request lies in. */
  protected chunkAt(slot: number, block: number): number {
    const { chunkTokens, ends } = this.prefixes[slot] as PromptPrefix;
    if (ends === undefined) return Math.floor(block / (chunkTokens >> this.blockShift));
    let c = 0;
    while (c < ends.length && ends[c] >> this.blockShift <= block) c++;
    return c;
  }

  /** First block of chunk `c` in its request. */
  protected chunkStart(slot: number, c: number): number {
    const { chunkTokens, ends } = this.prefixes[slot] as PromptPrefix;
    if (c === 0) return 0;
    return (ends === undefined ? c * chunkTokens : ends[c - 1]) >> this.blockShift;
  }

  /** Block behind chunk `c` in its request, of the whole ones with a name; 0 behind the last chunk. */
  private chunkEnd(slot: number, c: number): number {
    const prefix = this.prefixOf(slot);
    if (prefix === null || c >= prefix.ids.length) return 0;
    const { ends, chunkTokens, namedTokens } = prefix;
    const end = ends === undefined ? (c + 1) * chunkTokens : ends[c];
    return Math.min(end, namedTokens ?? this.table.input[slot]) >> this.blockShift;
  }

  /** Block behind the last whole one of a request that has a name. */
  protected namedEnd(slot: number): number {
    const chunks = this.prefixOf(slot)?.ids.length ?? 0;
    return chunks === 0 ? 0 : this.chunkEnd(slot, chunks - 1);
  }

  protected chunkKey(slot: number, c: number): number {
    return (this.prefixes[slot] as PromptPrefix).ids[c];
  }

  /** Key of what no other request can ask for: negative, where chunk ids are not. */
  protected ownKey(slot: number): number {
    return -1 - this.table.order[slot];
  }
}

type BlockPoolSnapshot = ReturnType<BlockPool['snapshot']>;
