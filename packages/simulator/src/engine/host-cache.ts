import { PrefixCache, type PrefixCacheSnapshot } from './prefix-cache.ts';

/**
 * Copies of KV blocks in the memory of the host, of which the least recently used are dropped. The blocks of a prompt are
 * used together, the last first, so that the start of a prefix survives longest.
 */
export class HostCache {
  private readonly blocks: number;
  private readonly cache = new PrefixCache();
  /** Blocks that no prompt under way holds. */
  private free = 0;
  /** Content under way: chunks with the number of their blocks. */
  private readonly held: [key: number, blocks: number][] = [];

  constructor(blocks: number) {
    this.blocks = blocks;
    this.clear();
  }

  clear(): void {
    this.free = this.blocks;
    this.cache.reset(this.blocks);
  }

  /** Blocks of a chunk that can be found, from its first on. */
  found(key: number): number {
    return this.cache.found(key);
  }

  /** Keeps the first `blocks` of a prompt's next chunk, as far as there is room, until `release`. */
  keep(key: number, blocks: number): void {
    const { cache } = this;
    const found = Math.min(cache.found(key), blocks);
    this.free -= cache.hold(key, found);
    const added = Math.min(blocks - found, this.free);
    if (added > 0) {
      cache.take(added);
      this.free -= added;
      // No slot of a request: copies of content that is there already are not made.
      cache.fill(0, key, found, found + added);
    }
    if (found + added > 0) this.held.push([key, found + added]);
  }

  /** Lets go of the chunks of a prompt, the last first. */
  release(): void {
    for (let last = this.held.pop(); last !== undefined; last = this.held.pop()) {
      this.free += this.cache.release(0, ...last);
    }
  }

  snapshot(): PrefixCacheSnapshot {
    return this.cache.snapshot();
  }

  restore(snapshot: PrefixCacheSnapshot): void {
    this.cache.restore(snapshot);
  }
}
