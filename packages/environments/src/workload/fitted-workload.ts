import { type PromptPrefix, portableMath, RandomStream } from '@servegym/simulator';
import { normalProbability } from '@servegym/simulator/statistics';
import azureCode2023 from './azure-code-2023.json' with { type: 'json' };
import azureConversation2023 from './azure-conversation-2023.json' with { type: 'json' };
import mooncakeConversation from './mooncake-conversation.json' with { type: 'json' };
import ragPulse from './ragpulse.json' with { type: 'json' };

/** Ids of the workloads that environments have. Tasks are drawn from this list: a longer one would draw others. */
export const WORKLOAD_IDS = ['azure-conversation-2023', 'azure-code-2023', 'mooncake-conversation'] as const;
type WorkloadId = (typeof WORKLOAD_IDS)[number];

/** Ids of the workloads fitted to public traces. */
export const PUBLIC_WORKLOAD_IDS = [...WORKLOAD_IDS, 'ragpulse'] as const;
export type PublicWorkloadId = (typeof PUBLIC_WORKLOAD_IDS)[number];

/**
 * A workload fitted to a trace: draws as much traffic as is asked for. Arrivals are a Poisson process whose rate moves:
 * slowly, through levels whose distribution is tabled and which remember where they were, and from second to second by
 * a factor that is gamma distributed with mean 1. Lengths follow tabled quantiles and are correlated through normal
 * scores.
 */
export interface FittedWorkload {
  /** Value of `reset({traffic})`. */
  readonly id: string;
  readonly title: string;
  /** Origin of the trace, with its licence. */
  readonly source: string;
  /** Requests and seconds of the trace that it was fitted to. */
  readonly requests: number;
  readonly seconds: number;
  readonly arrivals: {
    /** Mean rate. */
    readonly perSecond: number;
    /** A level lasts this long, s. */
    readonly levelSeconds: number;
    /** Rate of a level over the mean rate: values at evenly spaced probabilities, 0 and 1 among them. Their mean is 1. */
    readonly levels: readonly number[];
    /** Parts of a level's normal score that fade independently; the shares sum to 1. */
    readonly memory: readonly { readonly share: number; readonly seconds: number }[];
    /** Shape of the gamma factor of each second, mean 1; `null` when the rate stays within a level. */
    readonly secondShape: number | null;
  };
  /** Quantiles of both lengths, tokens, at ascending probabilities from 0 to 1. */
  readonly lengths: {
    readonly probabilities: readonly number[];
    readonly input: readonly number[];
    readonly output: readonly number[];
    /** Of the normal scores of input and output. */
    readonly correlation: number;
  };
  /** Prefixes that prompts share; `null` where the trace has no block hashes. */
  readonly prefixes: {
    /** Tokens in a block of the trace. */
    readonly blockTokens: number;
    /**
     * Share of the requests that continue an earlier prompt beyond what all have in common, by the length of their own:
     * each entry holds for prompts longer than the one before it says, up to `upToTokens`.
     */
    readonly continued: readonly { readonly upToTokens: number; readonly share: number }[];
    /** Tokens that every prompt begins with. */
    readonly commonTokens: number;
    /** Quantiles of the share of a prompt that is shared, and of the time since the earlier one, s. */
    readonly sharedShare: readonly number[];
    readonly gapSeconds: readonly number[];
    /** Share of all prompt tokens that an unbounded prefix cache would have held. */
    readonly cacheableShare: number;
  } | null;
  /** Kolmogorov-Smirnov distances, the largest gaps between two distributions. */
  readonly fit: {
    /** Between the trace and a long draw from the model; counts are those in a level's time. */
    readonly ks: Readonly<Record<'input' | 'output' | 'counts' | 'gaps', number>>;
    /** Between a model fitted to the first half of the trace and its second half, and between the halves themselves. */
    readonly heldOut: Readonly<Record<'input' | 'output' | 'halvesInput' | 'halvesOutput', number>>;
    /** Variance of the number of arrivals over its mean, at several scales: 1 for Poisson traffic. */
    readonly dispersion: readonly Readonly<Record<'seconds' | 'trace' | 'model', number>>[];
  };
}

const MODELS: Readonly<Record<PublicWorkloadId, FittedWorkload>> = {
  'azure-conversation-2023': azureConversation2023,
  'azure-code-2023': azureCode2023,
  'mooncake-conversation': mooncakeConversation,
  ragpulse: ragPulse,
};

/** The model of this id that environments have; `undefined` when there is none. */
export function findWorkload(id: string): FittedWorkload | undefined {
  return WORKLOAD_IDS.some((known) => known === id) ? MODELS[id as WorkloadId] : undefined;
}

export function publicWorkload(id: PublicWorkloadId): FittedWorkload {
  return MODELS[id];
}

/**
 * Draws `seconds` of traffic, in order of arrival. Levels, seconds, arrivals and lengths have a random stream each.
 * @param rateScale arrivals come this many times as fast; a function says so for each second
 * @param promptScale prompts are this many times as long
 */
export function drawWorkload(
  model: Pick<FittedWorkload, 'arrivals' | 'lengths'>,
  seed: number,
  seconds: number,
  {
    rateScale = 1,
    promptScale = 1,
  }: { readonly rateScale?: number | ((second: number) => number); readonly promptScale?: number } = {},
) {
  const { perSecond, levelSeconds, secondShape } = model.arrivals;
  const levels = levelStream(model, seed);
  const factors = new RandomStream(seed, 'second factors');
  const arrivals = new RandomStream(seed, 'arrivals');
  const lengths = new RandomStream(seed, 'lengths');
  const { probabilities, input, output, correlation } = model.lengths;
  const arrivalSeconds: number[] = [];
  const inputTokens: number[] = [];
  const outputTokens: number[] = [];
  let level = 0;
  for (let second = 0; second < seconds; second++) {
    if (second % levelSeconds === 0) level = levels();
    const factor = secondShape === null ? 1 : gamma(factors, secondShape) / secondShape;
    const scale = typeof rateScale === 'number' ? rateScale : rateScale(second);
    const rate = perSecond * scale * level * factor;
    if (rate <= 0) continue;
    const end = Math.min(1, seconds - second);
    for (let at = arrivals.exponential(1 / rate); at < end; at += arrivals.exponential(1 / rate)) {
      arrivalSeconds.push(second + at);
      const first = lengths.normal();
      const other = correlation * first + Math.sqrt(1 - correlation ** 2) * lengths.normal();
      const prompt = logQuantile(probabilities, input, normalProbability(first));
      inputTokens.push(Math.max(1, Math.round(prompt * promptScale)));
      outputTokens.push(
        Math.max(1, Math.round(logQuantile(probabilities, output, normalProbability(other)))),
      );
    }
  }
  return { arrivalSeconds, inputTokens, outputTokens };
}

/** Levels in a row, relative to the mean rate. Each part of the memory is an autoregressive process of order 1. */
function levelStream({ arrivals }: Pick<FittedWorkload, 'arrivals'>, seed: number): () => number {
  const draws = new RandomStream(seed, 'levels');
  const parts = arrivals.memory.map(({ share, seconds }) => ({
    weight: Math.sqrt(share),
    keep: portableMath.exp(-arrivals.levelSeconds / seconds),
    score: draws.normal(),
  }));
  return () => {
    let score = 0;
    for (const part of parts) {
      score += part.weight * part.score;
      part.score = part.keep * part.score + Math.sqrt(1 - part.keep ** 2) * draws.normal();
    }
    return evenQuantile(arrivals.levels, normalProbability(score));
  };
}

/** Gamma with this shape and scale 1 (Marsaglia and Tsang, 2000). */
function gamma(draws: RandomStream, shape: number): number {
  if (shape < 1) return gamma(draws, shape + 1) * portableMath.pow(1 - draws.uniform(), 1 / shape);
  const d = shape - 1 / 3;
  const c = 1 / Math.sqrt(9 * d);
  for (;;) {
    const normal = draws.normal();
    const v = portableMath.cube(1 + c * normal);
    if (v > 0 && portableMath.log(1 - draws.uniform()) < normal ** 2 / 2 + d * (1 - v + portableMath.log(v)))
      return d * v;
  }
}

/** The value at probability `p` of quantiles tabled at evenly spaced probabilities from 0 to 1, linear between. */
export function evenQuantile(quantiles: readonly number[], p: number): number {
  const at = Math.min(1, Math.max(0, p)) * (quantiles.length - 1);
  const below = Math.min(quantiles.length - 2, Math.floor(at));
  return quantiles[below] + (at - below) * (quantiles[below + 1] - quantiles[below]);
}

/** The value at probability `p` of positive quantiles tabled at `probabilities`, linear in the logarithm between. */
export function logQuantile(
  probabilities: readonly number[],
  quantiles: readonly number[],
  p: number,
): number {
  const low = Math.max(0, lastBefore(probabilities, p, probabilities.length - 1));
  const high = low + 1;
  const share = (p - probabilities[low]) / (probabilities[high] - probabilities[low]);
  return quantiles[low] * portableMath.pow(quantiles[high] / quantiles[low], Math.min(1, Math.max(0, share)));
}

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
  sharing: NonNullable<FittedWorkload['prefixes']>,
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
