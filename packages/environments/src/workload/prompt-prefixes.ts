import { type PromptPrefix, RandomStream } from '@servegym/simulator';
import type { PrefixSharing } from './fitted-workload.ts';
import { evenQuantile } from './fitted-workload.ts';

/** A prompt continues one of so many before and after the drawn moment: one that is as long as what is shared. */
const NEIGHBOURS = 16;

/** Text that prompts share with earlier ones: the chunks of request i are `ids[offsets[i]] .. ids[offsets[i + 1] - 1]`. */
export interface PromptPrefixes {
  readonly chunkTokens: number;
  /** Equal ids stand for equal text, behind an equal chain. */
  readonly ids: Float64Array;
  readonly offsets: Int32Array;
}

/** Prefix of a request as the engine takes it; `null` where it is not known. */
export function promptPrefix(
  { prefixes }: { readonly prefixes?: PromptPrefixes },
  id: number,
): PromptPrefix | null {
  if (prefixes === undefined) return null;
  const { chunkTokens, ids, offsets } = prefixes;
  return { chunkTokens, ids: ids.subarray(offsets[id], offsets[id + 1]) };
}

/**
 * Draws which earlier prompt each one continues, and how far. A prompt that continues none has only in common what all
 * begin with. `arrivalSeconds` ascend.
 */
export function drawPrefixes(
  sharing: PrefixSharing,
  seed: number,
  arrivalSeconds: ArrayLike<number>,
  inputTokens: ArrayLike<number>,
): PromptPrefixes {
  const { blockTokens, continued, commonTokens, sharedShare, gapSeconds } = sharing;
  const draws = new RandomStream(seed, 'prefixes');
  const ids: number[] = [];
  const offsets = new Int32Array(arrivalSeconds.length + 1);
  const common = Math.floor(commonTokens / blockTokens);
  let fresh = common;
  for (let i = 0; i < arrivalSeconds.length; i++) {
    const blocks = Math.ceil(inputTokens[i] / blockTokens);
    const group =
      continued.find(({ upToTokens }) => inputTokens[i] <= upToTokens) ?? continued[continued.length - 1];
    const continues = draws.uniform() < group.share;
    const gap = evenQuantile(gapSeconds, draws.uniform());
    const share = evenQuantile(sharedShare, draws.uniform());
    const shared = Math.min(blocks, Math.floor((share * inputTokens[i]) / blockTokens));
    const near = continues ? lastBefore(arrivalSeconds, arrivalSeconds[i] - gap, i) : -1;
    if (near >= 0) {
      const earlier = continuedPrompt(offsets, near, i, shared);
      const held = Math.min(shared, offsets[earlier + 1] - offsets[earlier]);
      for (let block = 0; block < held; block++) ids.push(ids[offsets[earlier] + block]);
    }
    for (let block = ids.length - offsets[i]; block < blocks; block++) {
      ids.push(block < common ? block : fresh++);
    }
    offsets[i + 1] = ids.length;
  }
  return { chunkTokens: blockTokens, ids: Float64Array.from(ids), offsets };
}

/** Of the prompts around `near`, the shortest that has what is shared, else the longest: conversations grow. */
function continuedPrompt(offsets: Int32Array, near: number, count: number, shared: number): number {
  const blocksOf = (request: number) => offsets[request + 1] - offsets[request];
  let best = near;
  for (let j = Math.max(0, near - NEIGHBOURS); j < Math.min(count, near + NEIGHBOURS); j++) {
    const has = blocksOf(j) >= shared;
    const bestHas = blocksOf(best) >= shared;
    const isNearer = has && bestHas ? blocksOf(j) < blocksOf(best) : !bestHas && blocksOf(j) > blocksOf(best);
    if (isNearer) best = j;
  }
  return best;
}

/** The last of the first `count` times that is not after `at`, or -1. */
function lastBefore(times: ArrayLike<number>, at: number, count: number): number {
  let low = -1;
  let high = count;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (times[middle] <= at) low = middle;
    else high = middle;
  }
  return low;
}
