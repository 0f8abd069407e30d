import {
  type EngineProfile,
  kvPoolBlocks,
  type PrefillDecodeSplit,
  WEIGHT_PRECISIONS,
  type WeightPrecision,
} from '@servegym/simulator';
import type { LaunchSettings } from '../deployment/engine-flags.ts';

/** Engines that prefill for each group of those that decode, `2:1`. */
export type SplitRatio = `${number}:${number}`;

/** Settings that flags of the engine name; a number of 0 turns one off that may be off. */
export const FLAG_KNOBS = [
  'maxNumSeqs',
  'maxNumBatchedTokens',
  'speculationDepth',
  'weights',
  'prefixCaching',
  'priority',
  'maxNumActiveSeqs',
  'longPrefillTokenThreshold',
  'longPrefillTokenThresholdAdaptive',
] as const satisfies readonly (keyof LaunchSettings)[];

/** Settings of an engine that `tune` chooses. */
export interface Candidate extends Readonly<Required<Pick<LaunchSettings, (typeof FLAG_KNOBS)[number]>>> {
  /** Share of the memory that weights, draft and activations leave, for KV. */
  readonly kvBudgetFraction: number;
  /** Engines that only prefill to engines that only decode; false where each does both. */
  readonly split: SplitRatio | false;
  /** Most requests of an iteration that tokens are drafted for, none for more; 0 leaves it to the profile. */
  readonly speculationMaxBatch: number;
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
  max_num_active_seqs: 'maxNumActiveSeqs',
  long_prefill_token_threshold: 'longPrefillTokenThreshold',
  long_prefill_token_threshold_adaptive: 'longPrefillTokenThresholdAdaptive',
  speculation_max_batch: 'speculationMaxBatch',
} as const satisfies Record<string, Knob>;

export type KnobName = keyof typeof KNOB_NAMES;

/** Settings that are searched only where they are named: they widen the space, and off is vLLM's default. */
export const EXTRA_KNOBS: readonly KnobName[] = [
  'max_num_active_seqs',
  'long_prefill_token_threshold',
  'long_prefill_token_threshold_adaptive',
  'speculation_max_batch',
];

/** The values that each setting may take, in order. Those that are not searched have one. */
export type CandidateSpace = { readonly [K in Knob]: readonly Candidate[K][] };

const GIB_70 = 70;

/**
 * Defaults of `vllm serve` (V1, `EngineArgs.get_batch_defaults` of vLLM 0.11): 8,192 tokens and
 * 1,024 sequences on GPUs of 70 GiB and more but A100, else 2,048 and 256. The flags of the scheduler are those that
 * the profile's engine was started with.
 */
export function vllmDefaults({ gpu, engine }: EngineProfile): Candidate {
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
    maxNumActiveSeqs: 0,
    longPrefillTokenThreshold: engine.longPrefillTokenThreshold ?? 0,
    longPrefillTokenThresholdAdaptive: engine.longPrefillTokenThresholdAdaptive ?? false,
    speculationMaxBatch: 0,
  };
}

/** Values that are searched, but for the precisions of the weights, which are those of the profile. */
const VALUES = {
  maxNumSeqs: [8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024],
  maxNumBatchedTokens: [256, 512, 1024, 2048, 4096, 8192, 16384],
  kvBudgetFraction: [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1],
  speculationDepth: [0, 1, 2, 3, 4, 5, 6, 7, 8],
  prefixCaching: [true, false],
  split: [false, '1:1'],
  priority: [false, true],
  // The last is off: the most of each.
  maxNumActiveSeqs: [8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 0],
  longPrefillTokenThreshold: [64, 128, 256, 512, 1024, 2048, 4096, 0],
  longPrefillTokenThresholdAdaptive: [false, true],
  speculationMaxBatch: [1, 2, 4, 8, 16, 32, 64, 128, 0],
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
  limits: {
    readonly knobs: readonly Knob[];
    readonly minQuality: number;
    readonly hasPrefixes: boolean;
    readonly hasClasses: boolean;
    readonly mostReplicas: number;
  },
): CandidateSpace {
  const { knobs, minQuality, hasPrefixes, hasClasses, mostReplicas } = limits;
  const defaults = vllmDefaults(profile);
  const values: CandidateSpace = { ...VALUES, weights: precisionsOf(profile, minQuality) };
  const changesNothing: Partial<Record<Knob, boolean>> = {
    speculationDepth: profile.speculation === null,
    weights: values.weights.length === 0,
    prefixCaching: !hasPrefixes,
    split: mostReplicas === 1,
    priority: !hasClasses,
    // With data parallelism, vLLM drafts the same for all batches.
    speculationMaxBatch: profile.speculation === null || (profile.parallel?.data ?? 1) > 1,
  };
  const space = Object.values(KNOB_NAMES).map((knob) => {
    const isSearched = knobs.includes(knob) && !changesNothing[knob];
    return [knob, isSearched ? values[knob] : [defaults[knob]]];
  });
  return Object.fromEntries(space);
}

/** Precisions of a profile's weights that are accurate enough. */
export function precisionsOf({ weights }: EngineProfile, minQuality: number): WeightPrecision[] {
  return WEIGHT_PRECISIONS.filter((precision) => (weights[precision]?.quality ?? Number.NaN) >= minQuality);
}

/** The candidate with what is searched but changes nothing beside its other settings turned off, so that equal ones are one. */
export function withoutIdle(space: CandidateSpace, candidate: Candidate): Candidate {
  const { maxNumSeqs, maxNumBatchedTokens, speculationDepth } = candidate;
  const unless = <K extends Knob>(knob: K, isIdle: boolean, off: Candidate[K]): Candidate[K] =>
    isIdle && space[knob].length > 1 ? off : candidate[knob];
  const isUncapped = candidate.maxNumActiveSeqs >= maxNumSeqs;
  const maxNumActiveSeqs = unless('maxNumActiveSeqs', isUncapped, 0);
  const isUnlimited = candidate.longPrefillTokenThreshold >= maxNumBatchedTokens;
  const longPrefillTokenThreshold = unless('longPrefillTokenThreshold', isUnlimited, 0);
  const isForAll =
    speculationDepth === 0 || candidate.speculationMaxBatch >= (maxNumActiveSeqs || maxNumSeqs);
  return {
    ...candidate,
    ...{ maxNumActiveSeqs, longPrefillTokenThreshold },
    longPrefillTokenThresholdAdaptive: unless(
      'longPrefillTokenThresholdAdaptive',
      longPrefillTokenThreshold === 0,
      false,
    ),
    speculationMaxBatch: unless('speculationMaxBatch', isForAll, 0),
  };
}

/** A profile of an engine that was started with the candidate's flags of the scheduler. */
export function startedWith(profile: EngineProfile, candidate: Candidate): EngineProfile {
  const { speculationDepth, speculationMaxBatch: last } = candidate;
  const { longPrefillTokenThreshold, longPrefillTokenThresholdAdaptive } = candidate;
  return {
    ...profile,
    engine: {
      ...profile.engine,
      ...{ longPrefillTokenThreshold, longPrefillTokenThresholdAdaptive },
      ...(last > 0 && {
        speculationDepthPerBatchSize: [
          [1, last, speculationDepth],
          [last + 1, Math.max(last + 1, candidate.maxNumSeqs), 0],
        ] as const,
      }),
    },
  };
}

/** The parts of a ratio. */
export function splitParts(ratio: SplitRatio): PrefillDecodeSplit {
  const [prefill, decode] = ratio.split(':').map(Number);
  return { prefill, decode };
}

/** Least number of engines that serve with the candidate's settings. */
export function fewestEngines({ split }: Pick<Candidate, 'split'>): number {
  if (split === false) return 1;
  const { prefill, decode } = splitParts(split);
  return prefill + decode;
}

/** USD an hour of an engine. */
export function engineUsd({ gpu }: EngineProfile): number {
  return gpu.count * gpu.usdPerHour;
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
    .filter(([name, knob]) => than !== undefined || candidate[knob] || !EXTRA_KNOBS.includes(name))
    .filter(([, knob]) => than === undefined || candidate[knob] !== than[knob])
    .map(([name, knob]) => `${name} ${settingText(candidate[knob])}`);
  return parts.length === 0 ? 'as vLLM’s defaults' : parts.join(', ');
}

function settingText(value: Candidate[Knob]): string {
  return typeof value === 'boolean' ? (value ? 'on' : 'off') : String(value);
}

/** A prime for each setting, in the order of `KNOB_NAMES`. */
const BASES = [2, 3, 7, 5, 11, 13, 17, 19, 23, 29, 31, 37];

/** Points of a sequence that are looked at for each candidate wanted, before the space counts as exhausted. */
const MOST_POINTS_EACH = 20;

/** Different candidates that cover the space evenly: a Halton sequence, without what cannot be. */
export function spaceFillingCandidates(
  profile: EngineProfile,
  space: CandidateSpace,
  count: number,
): Candidate[] {
  const found = new Map<string, Candidate>();
  for (let point = 1; found.size < count && point <= MOST_POINTS_EACH * count; point += 1) {
    const candidate = withoutIdle(space, candidateAt(space, point));
    if (isPossible(profile, candidate)) found.set(candidateKey(candidate), candidate);
  }
  return [...found.values()];
}

/** Candidates that differ in one setting that has an effect, by one step up or down; weights and switches by any. */
export function neighbours(profile: EngineProfile, space: CandidateSpace, candidate: Candidate): Candidate[] {
  return (Object.keys(space) as Knob[])
    .flatMap((knob) => {
      const values: readonly Candidate[Knob][] = space[knob];
      const at = values.indexOf(candidate[knob]);
      const isScale = typeof candidate[knob] === 'number';
      const others = isScale
        ? [at - 1, at + 1].filter((i) => i >= 0 && i < values.length)
        : [...values.keys()].filter((i) => i !== at);
      return others.map((i) => withoutIdle(space, { ...candidate, [knob]: values[i] }));
    })
    .filter((near) => isPossible(profile, near))
    .filter((near) => candidateKey(near) !== candidateKey(candidate));
}

function candidateAt(space: CandidateSpace, point: number): Candidate {
  const chosen = Object.values(KNOB_NAMES).map((knob, k) => {
    const values = space[knob];
    return [knob, values[Math.floor(radicalInverse(point, BASES[k]) * values.length)]];
  });
  return Object.fromEntries(chosen);
}

/** The digits of `point` in a base, mirrored at the point: a number in [0, 1). */
function radicalInverse(point: number, base: number): number {
  let inverse = 0;
  let weight = 1 / base;
  for (let rest = point; rest > 0; rest = Math.floor(rest / base)) {
    inverse += (rest % base) * weight;
    weight /= base;
  }
  return inverse;
}
