import type { PromptPrefix } from '../engine/prefix-cache.ts';
import type { Trace } from '../traces/trace.ts';

type PrefixBlocks = NonNullable<Trace['prefixBlocks']>;

/** A neighbour of a block that has several. */
const SEVERAL = -1;
/** Ids up to this many times their number index arrays; larger ones are numbered anew. */
const SPARSE = 4;

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
  /** First chunk of each request. */
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
    const dense = denseIds(ids);
    const isChunkStart = chunkStarts(dense, offsets);
    const requests = offsets.length - 1;
    this.offsets = new Int32Array(offsets.length);
    let chunks = 0;
    for (let request = 0; request < requests; request++) {
      const end = offsets[request + 1];
      for (let at = offsets[request]; at < end; at++) chunks += isChunkStart[dense[at]];
      this.offsets[request + 1] = chunks;
    }
    const chunkIds = new Int32Array(chunks);
    const ends = new Int32Array(chunks);
    let chunk = 0;
    for (let request = 0; request < requests; request++) {
      const first = offsets[request];
      const end = offsets[request + 1];
      for (let at = first; at < end; at++) {
        const id = dense[at];
        if (isChunkStart[id] === 0) continue;
        // It ends where the next begins.
        if (at > first) ends[chunk - 1] = (at - first) * blockTokens;
        chunkIds[chunk++] = id;
      }
      if (end > first) ends[chunk - 1] = (end - first) * blockTokens;
    }
    this.ids = chunkIds;
    this.ends = ends;
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

/** Whether each block begins a chunk: as the first of a prompt, with several blocks before it, or behind one that several follow. */
function chunkStarts(ids: Int32Array, offsets: Int32Array): Uint8Array {
  let largest = 0;
  for (let at = 0; at < ids.length; at++) if (ids[at] > largest) largest = ids[at];
  // A neighbour's id + 1; 0 while none is known.
  const before = new Int32Array(largest + 1);
  const behind = new Int32Array(largest + 1);
  const isStart = new Uint8Array(largest + 1);
  for (let request = 0; request + 1 < offsets.length; request++) {
    const first = offsets[request];
    const end = offsets[request + 1];
    if (first === end) continue;
    let previous = ids[first];
    isStart[previous] = 1;
    for (let at = first + 1; at < end; at++) {
      const id = ids[at];
      if (behind[previous] !== id + 1) behind[previous] = behind[previous] === 0 ? id + 1 : SEVERAL;
      if (before[id] !== previous + 1) before[id] = before[id] === 0 ? previous + 1 : SEVERAL;
      previous = id;
    }
  }
  for (let id = 0; id <= largest; id++) {
    if (before[id] === SEVERAL || (before[id] > 0 && behind[before[id] - 1] === SEVERAL)) isStart[id] = 1;
  }
  return isStart;
}

/** The ids as they are where they are small, else numbered in the order in which they come. */
function denseIds(ids: Float64Array): Int32Array {
  const most = Math.min(2 ** 30, SPARSE * ids.length);
  const dense = new Int32Array(ids.length);
  let at = 0;
  for (; at < ids.length && ids[at] >= 0 && ids[at] <= most; at++) dense[at] = ids[at];
  if (at === ids.length) return dense;
  const numbers = new Map<number, number>();
  for (at = 0; at < ids.length; at++) {
    let number = numbers.get(ids[at]);
    if (number === undefined) {
      number = numbers.size;
      numbers.set(ids[at], number);
    }
    dense[at] = number;
  }
  return dense;
}
