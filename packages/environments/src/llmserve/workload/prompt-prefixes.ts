import { type PromptPrefix, RandomStream } from '@servegym/simulator';
import { evenQuantile } from '../traffic/quantile-table.ts';
import type { PrefixSharing } from '../traffic/traffic-model.ts';
import type { Workload } from './workload.ts';

/** What prompts share with earlier ones: the chunks of request i are `ids[offsets[i]] .. ids[offsets[i + 1] - 1]`. */
export interface PromptPrefixes {
  readonly chunkTokens: number;
  /** Equal ids stand for equal text, behind an equal chain. */
  readonly ids: Float64Array;
  readonly offsets: Int32Array;
}

/** What the prompt of a request shares, in the engine's words; `null` where the traffic does not tell. */
export function promptPrefix({ prefixes }: Pick<Workload, 'prefixes'>, id: number): PromptPrefix | null {
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
    const continues = draws.uniform() < continued;
    const gap = evenQuantile(gapSeconds, draws.uniform());
    const share = evenQuantile(sharedShare, draws.uniform());
    const earlier = continues ? lastBefore(arrivalSeconds, arrivalSeconds[i] - gap, i) : -1;
    if (earlier >= 0) {
      const theirs = offsets[earlier + 1] - offsets[earlier];
      const shared = Math.min(blocks, theirs, Math.floor((share * inputTokens[i]) / blockTokens));
      for (let block = 0; block < shared; block++) ids.push(ids[offsets[earlier] + block]);
    }
    for (let block = ids.length - offsets[i]; block < blocks; block++) {
      ids.push(block < common ? block : fresh++);
    }
    offsets[i + 1] = ids.length;
  }
  return { chunkTokens: blockTokens, ids: Float64Array.from(ids), offsets };
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
