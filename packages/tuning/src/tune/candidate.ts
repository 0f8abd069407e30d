import {
  type EngineProfile,
  kvPoolBlocks,
  WEIGHT_PRECISIONS,
  type WeightPrecision,
} from '@servegym/simulator';

/** Settings of an engine that `tune` chooses. The names are those of vLLM where it has one. */
export interface Candidate {
  readonly maxNumSeqs: number;
  readonly maxNumBatchedTokens: number;
  /** Share of the memory that weights, draft and activations leave, for KV. */
  readonly kvBudgetFraction: number;
  /** Draft tokens a decode step; 0 is off. */
  readonly speculationDepth: number;
  readonly weights: WeightPrecision;
  readonly prefixCaching: boolean;
  /** True when engines serve in pairs, of which one prefills and the other decodes. */
  readonly split: boolean;
  /** True when urgent classes go first; else requests are served in order of arrival. */
  readonly priority: boolean;
}

export type Knob = keyof Candidate;

/** Names of the settings on the command line of `tune`. */
export const KNOB_NAMES = {
  max_num_seqs: 'maxNumSeqs',
  max_num_batched_tokens: 'maxNumBatchedTokens',
  kv_fraction: 'kvBudgetFraction',
  speculation: 'speculationDepth',
  quantization: 'weights',
  prefix_caching: 'prefixCaching',
  split: 'split',
  priority: 'priority',
} as const satisfies Record<string, Knob>;

export type KnobName = keyof typeof KNOB_NAMES;

/** The values that each setting may take, in order. Those that are not searched have one. */
export type CandidateSpace = { readonly [K in Knob]: readonly Candidate[K][] };

const GIB_70 = 70;

/**
 * Defaults of `vllm serve` (V1, `EngineArgs.get_batch_defaults` of vLLM 0.11): 8,192 tokens and
 * 1,024 sequences on GPUs of 70 GiB and more but A100, else 2,048 and 256.
 */
export function vllmDefaults({ gpu }: EngineProfile): Candidate {
  const isLarge = gpu.memoryGiB >= GIB_70 && !/a100/i.test(gpu.name);
  return {
    maxNumSeqs: isLarge ? 1024 : 256,
    maxNumBatchedTokens: isLarge ? 8192 : 2048,
    kvBudgetFraction: 1,
    speculationDepth: 0,
    weights: 'FP16',
    prefixCaching: true,
    split: false,
    priority: false,
  };
}

const VALUES = {
  maxNumSeqs: [8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024],
  maxNumBatchedTokens: [256, 512, 1024, 2048, 4096, 8192, 16384],
  kvBudgetFraction: [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1],
  speculationDepth: [0, 1, 2, 3, 4, 5, 6, 7, 8],
} as const;

/**
 * Values to search on a profile.
 *
 * @param knobs Those to search; the others stay at vLLM's defaults.
 * @param minQuality Least accuracy, relative to FP16, that weights may have.
 * @param hasPrefixes Whether the traffic shares prefixes; without them prefix caching changes nothing.
 * @param hasClasses Whether its requests have priority classes; without them the order is that of arrival.
 * @param mostReplicas Engines that may serve; a split takes two.
 */
export function candidateSpace(
  profile: EngineProfile,
  {
    knobs,
    minQuality,
    hasPrefixes,
    hasClasses,
    mostReplicas,
  }: {
    readonly knobs: readonly Knob[];
    readonly minQuality: number;
    readonly hasPrefixes: boolean;
    readonly hasClasses: boolean;
    readonly mostReplicas: number;
  },
): CandidateSpace {
  const defaults = vllmDefaults(profile);
  const precisions = WEIGHT_PRECISIONS.filter(
    (precision) => (profile.weights[precision]?.quality ?? Number.NaN) >= minQuality,
  );
  const choose = <K extends Knob>(knob: K, values: readonly Candidate[K][]): readonly Candidate[K][] =>
    knobs.includes(knob) && values.length > 0 ? values : [defaults[knob]];
  return {
    maxNumSeqs: choose('maxNumSeqs', VALUES.maxNumSeqs),
    maxNumBatchedTokens: choose('maxNumBatchedTokens', VALUES.maxNumBatchedTokens),
    kvBudgetFraction: choose('kvBudgetFraction', VALUES.kvBudgetFraction),
    speculationDepth: choose(
      'speculationDepth',
      profile.speculation === null ? [0] : VALUES.speculationDepth,
    ),
    weights: choose('weights', precisions),
    prefixCaching: hasPrefixes ? choose('prefixCaching', [true, false]) : [true],
    split: mostReplicas > 1 ? choose('split', [false, true]) : [false],
    priority: hasClasses ? choose('priority', [false, true]) : [false],
  };
}

/** True when vLLM would start with these settings: the token budget must hold all sequences, and KV must fit. */
export function isPossible(profile: EngineProfile, candidate: Candidate): boolean {
  const { maxNumSeqs, maxNumBatchedTokens, weights, speculationDepth, kvBudgetFraction } = candidate;
  return (
    maxNumBatchedTokens >= maxNumSeqs &&
    kvPoolBlocks(profile, weights, speculationDepth > 0, kvBudgetFraction) >= 1
  );
}

/** A name for equal settings. */
export function candidateKey(candidate: Candidate): string {
  return Object.values(candidate).join(' ');
}

/** The settings in a line; with `than`, only those that differ. */
export function candidateText(candidate: Candidate, than?: Candidate): string {
  const parts = (Object.entries(KNOB_NAMES) as [KnobName, Knob][])
    .filter(([, knob]) => than === undefined || candidate[knob] !== than[knob])
    .map(([name, knob]) => `${name} ${settingText(candidate[knob])}`);
  return parts.length === 0 ? 'as vLLM’s defaults' : parts.join(', ');
}

function settingText(value: Candidate[Knob]): string {
  return typeof value === 'boolean' ? (value ? 'on' : 'off') : String(value);
}
