import type { PromptPrefix } from '../src/engine/prefix-cache.ts';

interface Owner {
  order: number;
  input: number;
  emitted: number;
  computed: number;
  blocks: number;
  transferred: boolean;
  preempted: boolean;
  prefix: PromptPrefix | null;
  /** Chunks held, first to last: key and blocks. */
  chunks: { key: number; blocks: number }[];
}

/**
 * A pool in which every free block is an object in a list: taken from the front, put back at the end, last block first.
 * A cached chunk is found block by block from its start.
 */
export class ReferenceBlockPool {
  queue: { key: number | null; index: number }[] = [];
  holders = new Map<number, number>();
  held = new Map<number, number>();
  private readonly blockTokens: number;
  private readonly caching: boolean;

  constructor(blocks: number, blockTokens: number, caching: boolean) {
    this.blockTokens = blockTokens;
    this.caching = caching;
    this.giveEmpty(blocks);
  }

  get free(): number {
    return this.queue.length;
  }

  take(blocks: number): void {
    this.queue.splice(0, blocks);
  }

  giveEmpty(blocks: number): void {
    for (let i = 0; i < blocks; i++) this.queue.push({ key: null, index: 0 });
  }

  clear(): void {
    for (const block of this.queue) block.key = null;
  }

  /** Blocks of `key` that can be found, from its first on. */
  private found(key: number): number {
    const held = this.held.get(key);
    if (held !== undefined) return held;
    const indices = this.queue.filter((block) => block.key === key).map((block) => block.index);
    let length = 0;
    while (indices.includes(length)) length++;
    return length;
  }

  private chunksOf(owner: Owner): { key: number; blocks: number }[] {
    const { prefix } = owner;
    if (!this.caching || prefix === null) return [];
    const chunks = [];
    for (let c = 0; c < prefix.ids.length; c++) {
      const tokens = Math.min(prefix.chunkTokens, owner.input - c * prefix.chunkTokens);
      const blocks = Math.floor(tokens / this.blockTokens);
      if (blocks <= 0) break;
      chunks.push({ key: prefix.ids[c], blocks });
    }
    return chunks;
  }

  /** Admits `owner` if it fits. Answers the tokens whose KV is cached, or null. */
  admit(owner: Owner): number | null {
    const total = owner.input + owner.emitted;
    const required = Math.ceil(total / this.blockTokens);
    const chunks = owner.transferred ? [] : this.chunksOf(owner);
    let unbroken = this.caching && !owner.transferred;
    let prefixBlocks = 0;
    const hits = new Map<number, number>();
    for (const { key, blocks } of chunks) {
      const found = unbroken || this.held.has(key) ? this.found(key) : 0;
      if (found > 0) hits.set(key, found);
      if (unbroken) prefixBlocks += found;
      unbroken = unbroken && found === blocks;
    }
    const privateKey = -1 - owner.order;
    const own = unbroken ? this.found(privateKey) : 0;
    prefixBlocks += own;
    const cached = [...hits.values()].reduce((sum, found) => sum + found, own);
    const revived = [...hits].reduce((sum, [key, found]) => sum + (this.held.has(key) ? 0 : found), own);
    if (required - cached + revived > this.queue.length) return null;

    this.queue = this.queue.filter(
      ({ key }) => key === null || !(hits.has(key) || (own > 0 && key === privateKey)),
    );
    for (const { key, blocks } of chunks) {
      // What was found behind a gap, or not at all, is computed anew; older copies are worthless.
      if (!hits.has(key)) for (const block of this.queue) if (block.key === key) block.key = null;
      this.held.set(key, blocks);
      this.holders.set(key, (this.holders.get(key) ?? 0) + 1);
    }
    for (const block of this.queue) if (block.key === privateKey) block.key = null;
    owner.chunks = chunks;
    // With a cache to look into, all blocks are taken at once; otherwise chunk by chunk.
    owner.blocks = this.caching && !owner.transferred && (owner.prefix !== null || owner.preempted) ? required : 0;
    if (owner.blocks > 0) this.take(required - cached);
    return Math.min(prefixBlocks, Math.floor((total - 1) / this.blockTokens)) * this.blockTokens;
  }

  release(owner: Owner, returns: boolean): void {
    const shared = owner.chunks.reduce((sum, chunk) => sum + chunk.blocks, 0);
    const own = owner.blocks - shared;
    const full = Math.max(0, Math.floor(owner.computed / this.blockTokens) - shared);
    // Transferred KV is not cached by chunk, so what it leaves behind does not continue a chain.
    const continues = owner.chunks.length === this.chunksOf(owner).length;
    const kept = returns && this.caching && continues ? Math.min(own, full) : 0;
    this.giveEmpty(own - kept);
    for (let index = kept - 1; index >= 0; index--) this.queue.push({ key: -1 - owner.order, index });
    let start = owner.chunks.length * (owner.prefix?.chunkTokens ?? 0);
    for (const { key, blocks } of owner.chunks.slice().reverse()) {
      start -= owner.prefix?.chunkTokens ?? 0;
      const holders = (this.holders.get(key) as number) - 1;
      this.holders.set(key, holders);
      if (holders > 0) continue;
      this.held.delete(key);
      this.holders.delete(key);
      const computed = Math.max(0, Math.min(blocks, Math.floor((owner.computed - start) / this.blockTokens)));
      this.giveEmpty(blocks - computed);
      for (let index = computed - 1; index >= 0; index--) this.queue.push({ key, index });
    }
    owner.chunks = [];
    owner.blocks = 0;
  }

  /** Makes the content of what `owner` left behind worthless. */
  forget(owner: Owner): void {
    for (const block of this.queue) if (block.key === -1 - owner.order) block.key = null;
  }
}
