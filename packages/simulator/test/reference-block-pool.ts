import type { PromptPrefix } from '../src/engine/prefix-cache.ts';

interface Block {
  /** Content, when it is a full block that can be found. */
  key: string | null;
  holders: number;
}

interface Owner {
  order: number;
  input: number;
  emitted: number;
  transferred: boolean;
  prefix: PromptPrefix | null;
  /** Blocks held, from the first token on. */
  table: Block[];
  /** Of these, how many have been given their content. */
  filled: number;
  /** Its KV came from another engine: nobody finds it. */
  foreign: boolean;
}

/**
 * vLLM's block pool, block by block. Free blocks are a queue: taken from the front; blocks with content go back to its
 * end, a request's last block first, others to its front. A full block is found by its content as soon as a scheduled
 * iteration fills it. Of blocks with equal content the one that was filled first is found.
 */
export class ReferenceBlockPool {
  queue: Block[] = [];
  /** Whether a request computes the last block that it finds again. */
  recomputesLastBlock = false;
  private readonly filled = new Map<string, Block[]>();
  private readonly blockTokens: number;
  private readonly caching: boolean;
  private foreigners = 0;
  /** Content of blocks that the host has copies of, the least recently used first. */
  private hostKeys: string[] = [];
  private readonly hostBlocks: number;

  constructor(blocks: number, blockTokens: number, caching: boolean, hostBlocks = 0) {
    this.hostBlocks = caching ? hostBlocks : 0;
    this.blockTokens = blockTokens;
    this.caching = caching;
    this.giveEmpty(blocks);
  }

  get free(): number {
    return this.queue.length;
  }

  /** Takes blocks out of the pool. */
  take(blocks: number): Block[] {
    const taken = this.queue.splice(0, blocks);
    for (const block of taken) this.empty(block);
    return taken;
  }

  giveEmpty(blocks: number): void {
    for (let i = 0; i < blocks; i++) this.queue.unshift({ key: null, holders: 0 });
  }

  clear(): void {
    for (const block of this.queue) this.empty(block);
    this.hostKeys = [];
  }

  /** Copies the full blocks of a prompt's first `tokens` to the host, of which the last is dropped first. */
  store(owner: Owner, tokens: number): void {
    const full = Math.floor(Math.min(tokens, owner.input) / this.blockTokens);
    const kept = Array.from({ length: Math.min(full, this.hostBlocks) }, (_, i) => this.keyOf(owner, i));
    const others = this.hostKeys.filter((key) => !kept.includes(key));
    const dropped = Math.max(0, others.length + kept.length - this.hostBlocks);
    this.hostKeys = [...others.slice(dropped), ...kept.reverse()];
  }

  /**
   * Lets `owner` hold what is cached of it, if the free blocks but `spare` suffice for the first `most` tokens that are not
   * cached and `beyond` slots behind them, and, if `whole`, for all of it. Answers the tokens that are cached and those that
   * the host has behind them, or null.
   */
  admit(
    owner: Owner,
    most: number,
    whole: boolean,
    spare: number,
    beyond: number,
  ): { cached: number; loaded: number } | null {
    const known = owner.input + owner.emitted;
    const { hits, loaded } = this.found(owner);
    const revived = hits.filter((block) => block.holders === 0).length;
    const reach = Math.min(known, (hits.length + loaded) * this.blockTokens + most) + beyond;
    const lacking = Math.ceil(Math.max(reach, whole ? known : 0) / this.blockTokens) - hits.length;
    if (lacking + revived + spare > this.free) return null;
    for (const block of hits) block.holders++;
    this.queue = this.queue.filter((block) => block.holders === 0);
    owner.table = hits;
    owner.filled = hits.length;
    owner.foreign = owner.transferred;
    return { cached: hits.length * this.blockTokens, loaded: loaded * this.blockTokens };
  }

  grow(owner: Owner, blocks: number): void {
    for (const block of this.take(blocks)) {
      block.holders = 1;
      owner.table.push(block);
    }
  }

  /** Gives the blocks that `tokens` fill their content. */
  fill(owner: Owner, tokens: number): void {
    if (!this.caching) return;
    for (const end = Math.floor(tokens / this.blockTokens); owner.filled < end; owner.filled++) {
      const block = owner.table[owner.filled];
      block.key = owner.foreign ? `foreign ${this.foreigners++}` : this.keyOf(owner, owner.filled);
      this.filled.set(block.key, [...(this.filled.get(block.key) ?? []), block]);
    }
  }

  release(owner: Owner): void {
    this.shorten(owner, 0);
    owner.filled = 0;
  }

  /** Takes back all blocks of `owner` but the first `kept`. */
  shorten(owner: Owner, kept: number): void {
    const empty: Block[] = [];
    const full: Block[] = [];
    for (const block of owner.table.splice(kept).reverse()) {
      if (--block.holders === 0) (block.key === null ? empty : full).push(block);
    }
    this.queue.unshift(...empty);
    this.queue.push(...full);
  }

  /** Tokens of a waiting request that are cached. */
  cachedTokens(owner: Owner): number {
    const { hits, loaded } = this.found(owner);
    return (hits.length + loaded) * this.blockTokens;
  }

  /** Blocks that are cached, and the number of those that the host has behind them. */
  private found(owner: Owner): { hits: Block[]; loaded: number } {
    if (owner.transferred) return { hits: [], loaded: 0 };
    const most = Math.floor((owner.input + owner.emitted - 1) / this.blockTokens);
    const hits = this.hits(owner, most);
    let end = hits.length;
    while (end < most && this.hostKeys.includes(this.keyOf(owner, end))) end++;
    const loaded = end - hits.length;
    if (!this.recomputesLastBlock) return { hits, loaded };
    return loaded > 0 ? { hits, loaded: loaded - 1 } : { hits: hits.slice(0, -1), loaded };
  }

  private hits(owner: Owner, most: number): Block[] {
    const hits: Block[] = [];
    while (this.caching && hits.length < most) {
      const found = this.filled.get(this.keyOf(owner, hits.length));
      if (found === undefined) break;
      hits.push(found[0]);
    }
    return hits;
  }

  private keyOf({ prefix, input, order }: Owner, index: number): string {
    const end = (index + 1) * this.blockTokens;
    if (prefix !== null && end <= (prefix.namedTokens ?? input)) {
      const chunk = Math.floor((index * this.blockTokens) / prefix.chunkTokens);
      if (chunk < prefix.ids.length) return `${prefix.ids[chunk]} + ${end - chunk * prefix.chunkTokens}`;
    }
    return `own ${order} ${index}`;
  }

  private empty(block: Block): void {
    if (block.key === null) return;
    const rest = (this.filled.get(block.key) as Block[]).filter((other) => other !== block);
    if (rest.length > 0) this.filled.set(block.key, rest);
    else this.filled.delete(block.key);
    block.key = null;
  }
}
