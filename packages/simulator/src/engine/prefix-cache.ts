/**
 * The content of a request's prompt as a chain of chunks with equal ids for equal content. A chunk counts as equal only
 * behind an equal chain, as vLLM's block hashes do, so ids must be unique to their chain.
 */
export interface PromptPrefix {
  /** Ids of the chunks, in order. The last chunk may be shorter than `chunkTokens`. */
  readonly ids: ArrayLike<number>;
  /** Tokens in a chunk; a multiple of the block size. */
  readonly chunkTokens: number;
  /**
   * Ends of the chunks where they differ in length, tokens from the prompt's first; multiples of the block size. Requests
   * with equal ids may end at different places in them. Default multiples of `chunkTokens`.
   */
  readonly ends?: ArrayLike<number>;
  /** Tokens, from the prompt's first on, whose content the ids name. More than the prompt where they name its answer too. Default the prompt. */
  readonly namedTokens?: number;
}

/** Neighbouring KV blocks with the same fate: of one chunk, with the same holders, or free and never asked for again. */
export class BlockRun {
  /** Neighbours in the queue of free blocks. */
  prev: BlockRun = this;
  next: BlockRun = this;
  /** The run of the chunk's following blocks. */
  following: BlockRun | null = null;
  /** The chunk they hold content of, or `null` for free blocks whose content nobody will ask for. */
  declare readonly chunk: CachedChunk | null;
  /** Position of the first in the chunk. */
  declare readonly start: number;
  declare blocks: number;
  /** Running requests that hold them. */
  holders = 0;

  constructor(chunk: CachedChunk | null, start: number, blocks: number) {
    this.chunk = chunk;
    this.start = start;
    this.blocks = blocks;
  }
}

/** The blocks that hold content of a chunk. */
class CachedChunk {
  declare readonly key: number;
  /** Blocks that can be found, from the chunk's first on: those of the runs that follow. */
  blocks = 0;
  following: BlockRun | null = null;
  /** Blocks with content that another block had first, one a run, in the order in which they were filled. */
  copies: BlockRun[] | null = null;

  constructor(key: number) {
    this.key = key;
  }
}

/**
 * The content of KV blocks, and the order in which free blocks are taken: vLLM's free queue. Blocks with content go to its
 * end, a request's last block first, so that the start of a prefix survives longest; others go to its front. Of blocks
 * with equal content the one that was filled first is found. Blocks are counted by runs, which keeps the cost per chunk,
 * not per block.
 */
export class PrefixCache {
  private readonly chunks = new Map<number, CachedChunk>();
  /** Runs that a request holds although another block had their content first, by slot. */
  private readonly copiesOf = new Map<number, BlockRun[]>();
  /** Stands between the last free run and the first, which is the next to be taken. */
  private readonly end = new BlockRun(null, 0, 0);

  /** All `blocks` are free and hold nothing. */
  reset(blocks: number): void {
    this.chunks.clear();
    this.copiesOf.clear();
    this.end.prev = this.end;
    this.end.next = this.end;
    this.freeEmpty(blocks);
  }

  /** Blocks of a chunk that can be found, from its first on. */
  found(key: number): number {
    return this.chunks.get(key)?.blocks ?? 0;
  }

  /** Of the first `blocks` of a chunk, which can be found, those that a running request holds. */
  heldOf(key: number, blocks: number): number {
    let held = 0;
    for (let run = this.runsOf(key); run !== null && run.start < blocks; run = run.following) {
      if (run.holders > 0) held += Math.min(run.blocks, blocks - run.start);
    }
    return held;
  }

  /** Takes `blocks` free blocks from the front of the queue; what they cached is lost. */
  take(blocks: number): void {
    const head = this.end.next;
    if (head.chunk === null && head.blocks > blocks) head.blocks -= blocks;
    else this.takeRuns(blocks);
  }

  private takeRuns(blocks: number): void {
    let left = blocks;
    while (left > 0) {
      const run = this.end.next;
      const taken = Math.min(left, run.blocks);
      left -= taken;
      if (run.chunk !== null) this.lose(run, run.chunk, taken);
      run.blocks -= taken;
      if (run.blocks === 0) unlink(run);
    }
  }

  /** Frees blocks without content: they are the next to be taken. */
  freeEmpty(blocks: number): void {
    if (blocks === 0) return;
    const { next } = this.end;
    if (next.chunk === null && next !== this.end) next.blocks += blocks;
    else insertBefore(next, new BlockRun(null, 0, blocks));
  }

  /** Frees blocks with content that nobody will ask for: they are taken as late as those with other content. */
  freeForgotten(blocks: number): void {
    if (blocks === 0) return;
    const { prev } = this.end;
    if (prev.chunk === null && prev !== this.end) prev.blocks += blocks;
    else insertBefore(this.end, new BlockRun(null, 0, blocks));
  }

  /** Holds the first `blocks` of a chunk, which can be found. Answers those that were free until now. */
  hold(key: number, blocks: number): number {
    let revived = 0;
    for (let run = this.runsOf(key); run !== null && run.start < blocks; run = run.following) {
      if (run.start + run.blocks > blocks) this.split(run, blocks - run.start);
      if (run.holders++ > 0) continue;
      unlink(run);
      revived += run.blocks;
    }
    return revived;
  }

  /** The request in `slot`, which holds the `from` blocks of the chunk before them, has filled the blocks up to `to`. */
  fill(slot: number, key: number, from: number, to: number): void {
    const chunk = this.chunkOf(key);
    let at = from;
    for (; at < to && at < chunk.blocks; at++) this.addCopy(slot, chunk, at);
    if (at === to) return;
    let last = chunk.following;
    while (last !== null && last.following !== null) last = last.following;
    chunk.blocks = to;
    if (last !== null && last.holders === 1 && at > 0 && !this.copiesOf.has(slot)) {
      last.blocks += to - at;
      return;
    }
    const run = new BlockRun(chunk, at, to - at);
    run.holders = 1;
    if (last === null) chunk.following = run;
    else last.following = run;
  }

  /** The request in `slot` lets go of the first `blocks` of a chunk, the last first. Answers those that are free now. */
  release(slot: number, key: number, blocks: number): number {
    const copies = this.copiesOf.get(slot);
    if (copies !== undefined) return this.releaseCopies(slot, copies, key, blocks);
    return this.releaseRuns(this.runsOf(key), blocks);
  }

  snapshot() {
    const runs: RunSnapshot[] = [];
    const positions = new Map<BlockRun, number>();
    const add = (run: BlockRun, copy: boolean) => {
      positions.set(run, runs.length);
      runs.push([run.chunk?.key ?? null, run.start, run.blocks, run.holders, copy]);
    };
    for (const { following, copies } of this.chunks.values()) {
      for (let run = following; run !== null; run = run.following) add(run, false);
      for (const copy of copies ?? []) add(copy, true);
    }
    /** Positions of the free runs in `runs`, the next to be taken first. */
    const queue: number[] = [];
    for (let run = this.end.next; run !== this.end; run = run.next) {
      if (run.chunk === null) add(run, false);
      queue.push(positions.get(run) as number);
    }
    /** Positions of the copies that a slot holds. */
    const copiesOf = [...this.copiesOf].map(
      ([slot, held]) => [slot, held.map((run) => positions.get(run) as number)] as const,
    );
    return { runs, queue, copiesOf };
  }

  restore(snapshot: PrefixCacheSnapshot): void {
    this.reset(0);
    let last: BlockRun | null = null;
    const runs = snapshot.runs.map(([key, start, blocks, holders, copy]) => {
      const chunk = key === null ? null : this.chunkOf(key);
      const run = new BlockRun(chunk, start, blocks);
      run.holders = holders;
      if (chunk === null) return run;
      if (copy) {
        chunk.copies = [...(chunk.copies ?? []), run];
        return run;
      }
      if (chunk.following === null) chunk.following = run;
      else (last as BlockRun).following = run;
      chunk.blocks += blocks;
      last = run;
      return run;
    });
    for (const at of snapshot.queue) insertBefore(this.end, runs[at]);
    for (const [slot, held] of snapshot.copiesOf) {
      this.copiesOf.set(
        slot,
        held.map((at) => runs[at]),
      );
    }
  }

  private runsOf(key: number): BlockRun | null {
    return this.chunks.get(key)?.following ?? null;
  }

  private chunkOf(key: number): CachedChunk {
    let chunk = this.chunks.get(key);
    if (chunk === undefined) {
      chunk = new CachedChunk(key);
      this.chunks.set(key, chunk);
    }
    return chunk;
  }

  private addCopy(slot: number, chunk: CachedChunk, at: number): void {
    const run = new BlockRun(chunk, at, 1);
    run.holders = 1;
    chunk.copies ??= [];
    chunk.copies.push(run);
    const copies = this.copiesOf.get(slot);
    if (copies === undefined) this.copiesOf.set(slot, [run]);
    else copies.push(run);
  }

  /** Lets go of the runs from `run` on that begin below `end`, the last first. */
  private releaseRuns(run: BlockRun | null, end: number): number {
    if (run === null || run.start >= end) return 0;
    return this.releaseRuns(run.following, end) + this.releaseRun(run);
  }

  private releaseRun(run: BlockRun): number {
    if (--run.holders > 0) return 0;
    insertBefore(this.end, run);
    return run.blocks;
  }

  /** The same where the request holds copies instead of some of the blocks that can be found. */
  private releaseCopies(slot: number, copies: BlockRun[], key: number, blocks: number): number {
    const chunk = this.chunks.get(key) as CachedChunk;
    let freed = 0;
    for (let end = blocks; end > 0; ) {
      const run =
        copies.find((copy) => copy.chunk === chunk && copy.start === end - 1) ?? runAt(chunk, end - 1);
      freed += this.releaseRun(run);
      end = run.start;
    }
    const others = copies.filter((copy) => copy.chunk !== chunk);
    if (others.length === 0) this.copiesOf.delete(slot);
    else this.copiesOf.set(slot, others);
    return freed;
  }

  /** Cuts a run behind its first `blocks`. */
  private split(run: BlockRun, blocks: number): void {
    const rest = new BlockRun(run.chunk, run.start + blocks, run.blocks - blocks);
    rest.holders = run.holders;
    rest.following = run.following;
    run.following = rest;
    run.blocks = blocks;
    // The last blocks are taken first.
    if (run.holders === 0) insertBefore(run, rest);
  }

  /** The last `lost` blocks of a free run are taken: their content is found in copies from now on, or nowhere. */
  private lose(run: BlockRun, chunk: CachedChunk, lost: number): void {
    const { copies } = chunk;
    const position = copies === null ? -1 : copies.indexOf(run);
    if (copies !== null && position >= 0) {
      copies.splice(position, 1);
      if (copies.length === 0) chunk.copies = null;
      return;
    }
    const kept = run.start + run.blocks - lost;
    if (run.blocks === lost) detach(run, chunk);
    if (copies === null) chunk.blocks = kept;
    else this.promote(chunk, copies, kept, kept + lost);
    if (chunk.blocks === 0) this.chunks.delete(chunk.key);
  }

  /** Lets the first copy of each block from `from` to `to` be found. */
  private promote(chunk: CachedChunk, copies: BlockRun[], from: number, to: number): void {
    for (let at = from; at < to; at++) {
      const position = copies.findIndex((copy) => copy.start === at);
      if (position < 0) {
        chunk.blocks = at;
        break;
      }
      attach(copies[position], chunk);
      copies.splice(position, 1);
    }
    if (copies.length === 0) chunk.copies = null;
  }
}

function insertBefore(run: BlockRun, earlier: BlockRun): void {
  earlier.prev = run.prev;
  earlier.next = run;
  run.prev.next = earlier;
  run.prev = earlier;
}

function unlink({ prev, next }: BlockRun): void {
  prev.next = next;
  next.prev = prev;
}

/** The run with block `at` of a chunk, which can be found. */
function runAt(chunk: CachedChunk, at: number): BlockRun {
  let run = chunk.following as BlockRun;
  while (run.start + run.blocks <= at) run = run.following as BlockRun;
  return run;
}

/** Puts a run among those of its chunk that can be found. */
function attach(run: BlockRun, chunk: CachedChunk): void {
  let before: CachedChunk | BlockRun = chunk;
  while (before.following !== null && before.following.start < run.start) before = before.following;
  run.following = before.following;
  before.following = run;
}

function detach(run: BlockRun, chunk: CachedChunk): void {
  let before: CachedChunk | BlockRun = chunk;
  while (before.following !== run) before = before.following as BlockRun;
  before.following = run.following;
}

type RunSnapshot = readonly [
  key: number | null,
  start: number,
  blocks: number,
  holders: number,
  isCopy: boolean,
];

export type PrefixCacheSnapshot = ReturnType<PrefixCache['snapshot']>;
