import { PrefixCache } from './prefix-cache.ts';

/**
 * Copies of KV blocks in the memory of the host, of which the least recently used are dropped. The blocks of a prompt are
 * used together, the last first, so that the start of a prefix survives longest.
 */
export class HostCache extends PrefixCache {
  private readonly blocks: number;
  /** Blocks that no prompt under way holds. */
  private free = 0;
  /** Content under way: chunks with the number of their blocks. */
  private readonly held: [key: number, blocks: number][] = [];

  constructor(blocks: number) {
    super();
    this.blocks = blocks;
    this.clear();
  }

  clear(): void {
    this.free = this.blocks;
    this.reset(this.blocks);
  }

  /** Keeps the first `blocks` of a prompt's next chunk, as far as there is room, until `letGo`. */
  keep(key: number, blocks: number): void {
    const found = Math.min(this.found(key), blocks);
    this.free -= this.hold(key, found);
    const added = Math.min(blocks - found, this.free);
    if (added > 0) {
      this.take(added);
      this.free -= added;
      // No slot of a request: copies of content that is there already are not made.
      this.fill(0, key, found, found + added);
    }
    if (found + added > 0) this.held.push([key, found + added]);
  }

  /** Lets go of the chunks of a prompt, the last first. */
  letGo(): void {
    for (let last = this.held.pop(); last !== undefined; last = this.held.pop()) {
      this.free += this.release(0, ...last);
    }
  }
}
