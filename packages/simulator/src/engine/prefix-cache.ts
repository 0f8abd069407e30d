/**
 * The content of a request's prompt as a chain of chunks with equal ids for equal content. A chunk counts as equal only
 * behind an equal chain, as vLLM's block hashes do, so ids must be unique to their chain.
 */
export interface PromptPrefix {
  /** Ids of the prompt's chunks, in order. The last chunk may be shorter than `chunkTokens`. */
  readonly ids: ArrayLike<number>;
  /** Tokens in a chunk; a multiple of the block size. */
  readonly chunkTokens: number;
  /** Tokens, from the start of the prompt on, whose content the ids name: beyond the prompt, those of the answer. Default the prompt. */
  readonly namedTokens?: number;
}

/** KV blocks with the same fate: free ones without content, or one chunk's, held or free but still cached. */
export class BlockRun {
  prev: BlockRun | null = null;
  next: BlockRun | null = null;
  /** Key of the cached content, or `null` for blocks whose content nobody will ask for. */
  declare readonly key: number | null;
  /** Blocks from the start of the chunk that hold its content. */
  declare blocks: number;
  /** Running requests that hold the chunk. */
  holders = 0;

  constructor(key: number | null, blocks: number) {
    this.key = key;
    this.blocks = blocks;
  }
}

/**
 * Which KV blocks still hold a prefix that somebody may ask for again, and in which order free blocks are taken: vLLM's
 * free queue. Blocks are freed in reverse, a request's last block first, and taken from the front, so that the start of
 * a prefix survives longest. Whole chunks are held and counted, which keeps the cost per chunk, not per block.
 */
export class PrefixCache {
  private readonly chunks = new Map<number, BlockRun>();
  private head: BlockRun | null = null;
  private tail: BlockRun | null = null;

  /** All `blocks` are free and hold nothing. */
  reset(blocks: number): void {
    this.chunks.clear();
    this.head = null;
    this.tail = null;
    this.freeEmpty(blocks);
  }

  find(key: number): BlockRun | undefined {
    return this.chunks.get(key);
  }

  /** Takes `blocks` free blocks from the front of the queue; what they cached is lost. */
  take(blocks: number): void {
    if (blocks === 0) return;
    const first = this.head as BlockRun;
    if (first.blocks > blocks) first.blocks -= blocks;
    else this.takeRuns(blocks);
  }

  /** Puts blocks without reusable content at the end of the queue. */
  freeEmpty(blocks: number): void {
    if (blocks === 0) return;
    if (this.tail !== null && this.tail.key === null) this.tail.blocks += blocks;
    else this.append(new BlockRun(null, blocks));
  }

  /** Caches a chunk that a request computes and holds. */
  insertHeld(key: number, blocks: number): void {
    const run = new BlockRun(key, blocks);
    run.holders = 1;
    this.chunks.set(key, run);
  }

  /** Holds a cached chunk. Answers the blocks that were free until now. */
  hold(run: BlockRun): number {
    if (run.holders++ > 0) return 0;
    this.unlink(run);
    return run.blocks;
  }

  /** Lets go of a held chunk. Answers the blocks that are free from now on. */
  release(run: BlockRun): number {
    if (--run.holders > 0) return 0;
    this.append(run);
    return run.blocks;
  }

  /** Caches blocks that are already free, at the end of the queue. */
  insertFree(key: number, blocks: number): void {
    if (blocks === 0) return;
    const run = new BlockRun(key, blocks);
    this.chunks.set(key, run);
    this.append(run);
  }

  /** Forgets the content of a chunk that nobody holds; its blocks stay where they are in the queue. */
  forget(key: number): void {
    const run = this.chunks.get(key);
    if (run === undefined) return;
    this.chunks.delete(key);
    const empty = new BlockRun(null, run.blocks);
    empty.prev = run.prev;
    empty.next = run.next;
    if (run.prev === null) this.head = empty;
    else run.prev.next = empty;
    if (run.next === null) this.tail = empty;
    else run.next.prev = empty;
  }

  /** Drops a chunk that its only holder has not computed. */
  discard(run: BlockRun): void {
    this.chunks.delete(run.key as number);
  }

  snapshot(): PrefixCacheSnapshot {
    const queue: RunSnapshot[] = [];
    for (let run = this.head; run !== null; run = run.next) queue.push([run.key, run.blocks]);
    const held: HeldSnapshot[] = [];
    for (const run of this.chunks.values()) {
      if (run.holders > 0) held.push([run.key as number, run.blocks, run.holders]);
    }
    return { queue, held };
  }

  restore(snapshot: PrefixCacheSnapshot): void {
    this.reset(0);
    for (const [key, blocks] of snapshot.queue) {
      const run = new BlockRun(key, blocks);
      if (key !== null) this.chunks.set(key, run);
      this.append(run);
    }
    for (const [key, blocks, holders] of snapshot.held) {
      this.insertHeld(key, blocks);
      (this.chunks.get(key) as BlockRun).holders = holders;
    }
  }

  /** Takes all of the first run and what is missing from those behind it. */
  private takeRuns(blocks: number): void {
    let left = blocks;
    while (left > 0) {
      const run = this.head as BlockRun;
      const taken = Math.min(left, run.blocks);
      run.blocks -= taken;
      left -= taken;
      if (run.blocks > 0) break;
      this.unlink(run);
      if (run.key !== null) this.chunks.delete(run.key);
    }
  }

  private append(run: BlockRun): void {
    run.prev = this.tail;
    run.next = null;
    if (this.tail === null) this.head = run;
    else this.tail.next = run;
    this.tail = run;
  }

  private unlink(run: BlockRun): void {
    if (run.prev === null) this.head = run.next;
    else run.prev.next = run.next;
    if (run.next === null) this.tail = run.prev;
    else run.next.prev = run.prev;
  }
}

type RunSnapshot = readonly [key: number | null, blocks: number];
type HeldSnapshot = readonly [key: number, blocks: number, holders: number];

export interface PrefixCacheSnapshot {
  readonly queue: readonly RunSnapshot[];
  readonly held: readonly HeldSnapshot[];
}
