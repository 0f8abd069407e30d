import type { PromptPrefix } from '../engine/prefix-cache.ts';
import type { Trace } from '../traces/trace.ts';

type PrefixBlocks = NonNullable<Trace['prefixBlocks']>;

/** A neighbour of a block that has several. */
const SEVERAL = -1;
/** Ids up to this many times their number index arrays; larger ones are numbered anew. */
const SPARSE = 4;
/** What is known of a block stands together: its neighbours and its prompt. */
const BEHIND = 1;
const OWNER = 2;
const STRIDE = 3;

/**
 * The hashes of a trace's requests as chains of few, long chunks: neighbouring blocks that no prompt has without each
 * other, but for where it ends, are one chunk with the number of its first block. A prefix cache then works by chunk, and
 * finds what it finds block by block.
 */
export class PromptChains {
  private static readonly known = new WeakMap<PrefixBlocks, PromptChains>();

  private readonly namesAnswers: boolean;
  private readonly blockTokens: number;
  /** First block of each chunk, and the end of the chunk in its prompt, tokens. */
  private readonly ids: Int32Array;
  private readonly ends: Int32Array;
  private readonly offsets: Int32Array;

  /** The chains of hashes, which a search for settings asks for again and again. */
  static of(blocks: PrefixBlocks): PromptChains {
    let chains = PromptChains.known.get(blocks);
    if (chains === undefined) {
      chains = new PromptChains(blocks);
      PromptChains.known.set(blocks, chains);
    }
    return chains;
  }

  private constructor(blocks: PrefixBlocks) {
    const { blockTokens, ids, offsets, namesAnswers = false } = blocks;
    this.namesAnswers = namesAnswers;
    this.blockTokens = blockTokens;
    const { known, count } = smallIds(ids);
    const { isStart, shared, sharedWith } = chunkStarts(known, offsets, count);
    const requests = offsets.length - 1;
    this.offsets = new Int32Array(offsets.length);
    const chunkIds: number[] = [];
    const ends: number[] = [];
    for (let request = 0; request < requests; request++) {
      const first = offsets[request];
      const end = offsets[request + 1];
      const begin = first + shared[request];
      const from = chunkIds.length;
      // The chunks of what another prompt has too; the last of them may end earlier or later here.
      for (
        let c = this.offsets[sharedWith[request]], at = 0;
        at < begin - first;
        at = ends[c++] / blockTokens
      ) {
        chunkIds.push(chunkIds[c]);
        ends.push(ends[c]);
      }
      for (let at = begin; at < end; at++) {
        const id = known[at];
        if (isStart[id] === 0) continue;
        // It ends where the next begins.
        if (chunkIds.length > from) ends[ends.length - 1] = (at - first) * blockTokens;
        chunkIds.push(id);
        ends.push(0);
      }
      if (end > first) ends[ends.length - 1] = (end - first) * blockTokens;
      this.offsets[request + 1] = chunkIds.length;
    }
    this.ids = Int32Array.from(chunkIds);
    this.ends = Int32Array.from(ends);
  }

  /** The content of request `at`, of `input` and `output` tokens. */
  prefixOf(at: number, input: number, output: number): PromptPrefix {
    const { offsets, blockTokens, namesAnswers } = this;
    const from = offsets[at];
    const to = offsets[at + 1];
    const named = to === from ? 0 : this.ends[to - 1];
    return {
      chunkTokens: blockTokens,
      ids: this.ids.subarray(from, to),
      ends: this.ends.subarray(from, to),
      namedTokens: Math.min(named, namesAnswers ? input + output : input),
    };
  }
}

type Ids = Float64Array | Int32Array;

/**
 * Whether each block begins a chunk: as the first of a prompt, with several blocks before it, or behind one that several follow. And
 * how many blocks each prompt begins with that an earlier prompt (`sharedWith`) begins with too. Turns of a conversation repeat nearly all of
 * what came before; that tells nothing new, and is only compared.
 */
function chunkStarts(ids: Ids, offsets: Int32Array, count: number) {
  // Of each block: a block before it and one behind it, ids + 1, and the last prompt in which it was no repetition, + 1. 0: none is known.
  const links = new Int32Array(STRIDE * count);
  const isStart = new Uint8Array(count);
  const shared = new Int32Array(offsets.length - 1);
  const sharedWith = new Int32Array(offsets.length - 1);
  for (let request = 0; request + 1 < offsets.length; request++) {
    const first = offsets[request];
    const end = offsets[request + 1];
    if (first === end) continue;
    // Where ids name all that is before them, those that are known come first.
    let low = first;
    for (let high = end; low < high; ) {
      const middle = (low + high) >>> 1;
      if (links[STRIDE * ids[middle] + OWNER] > 0) low = middle + 1;
      else high = middle;
    }
    let at = first;
    if (low > first) {
      const other = links[STRIDE * ids[low - 1] + OWNER] - 1;
      const apart = offsets[other] - first;
      const last = Math.min(end, offsets[other + 1] - apart);
      while (at < last && ids[at] === ids[at + apart]) at++;
      shared[request] = at - first;
      sharedWith[request] = other;
    }
    let previous = ids[Math.max(first, at - 1)];
    if (at === first) {
      isStart[previous] = 1;
      links[STRIDE * previous + OWNER] = request + 1;
      at++;
    }
    for (; at < end; at++) {
      const id = ids[at];
      const own = STRIDE * id;
      const behind = STRIDE * previous + BEHIND;
      if (links[behind] !== id + 1) links[behind] = links[behind] === 0 ? id + 1 : SEVERAL;
      if (links[own] !== previous + 1) links[own] = links[own] === 0 ? previous + 1 : SEVERAL;
      links[own + OWNER] = request + 1;
      previous = id;
    }
  }
  for (let id = 0; id < count; id++) {
    const before = links[STRIDE * id];
    if (before === SEVERAL || (before > 0 && links[STRIDE * (before - 1) + BEHIND] === SEVERAL))
      isStart[id] = 1;
  }
  return { isStart, shared, sharedWith };
}

/** The ids as they are where they are small, else numbered in the order in which they come. */
function smallIds(ids: Float64Array): { readonly known: Ids; readonly count: number } {
  const most = Math.min(2 ** 30, SPARSE * ids.length);
  let largest = -1;
  let least = 0;
  for (let at = 0; at < ids.length; at++) {
    const id = ids[at];
    if (id > largest) largest = id;
    else if (id < least) least = id;
  }
  if (least >= 0 && largest <= most) return { known: ids, count: largest + 1 };
  const numbers = new Map<number, number>();
  const known = new Int32Array(ids.length);
  for (let at = 0; at < ids.length; at++) {
    let number = numbers.get(ids[at]);
    if (number === undefined) {
      number = numbers.size;
      numbers.set(ids[at], number);
    }
    known[at] = number;
  }
  return { known, count: numbers.size };
}
