import {
  type EngineProfile,
  kvPoolBlocks,
  type PrefillDecodeSplit,
  WEIGHT_PRECISIONS,
  type WeightPrecision,
} from '@servegym/simulator';
import type { LaunchSettings } from '../deployment/engine-flags.ts';
import type { SETTINGS, SearchSpace } from './search-space.ts';
import { TuningError } from './slo.ts';

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
  'kvOffloadingGiB',
] as const satisfies readonly (keyof LaunchSettings)[];

/** Settings of an engine that `tune` chooses. */
export interface Candidate extends Readonly<Required<Pick<LaunchSettings, (typeof FLAG_KNOBS)[number]>>> {
  /** Share of the memory that weights, draft and activations leave, for KV. */
  readonly kvBudgetFraction: number;
  /** Engines that only prefill to engines that only decode; false where each does both. */
  readonly split: SplitRatio | false;
  /** Most requests of an iteration that tokens are drafted for, none for more; 0 leaves it to the profile. */
  readonly speculationMaxBatch: number;
  /** Longest prompt that is prefilled on the engine that decodes it, tokens; 0 where all are prefilled apart. */
  readonly maxLocalPrefillLength: number;
  /** Seconds of queue above which the gateway refuses the least urgent classes; 0 where it refuses none. */
  readonly admissionQueueSeconds: number;
}

export type Knob = keyof Candidate;

/** Names of the settings in JSON and on the command line. */
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
  kv_offloading_size: 'kvOffloadingGiB',
  max_local_prefill_length: 'maxLocalPrefillLength',
  admission_queue_seconds: 'admissionQueueSeconds',
} as const satisfies Record<keyof typeof SETTINGS, Knob>;

export type KnobName = keyof typeof KNOB_NAMES;

/** Settings that are searched only where they are named: they widen the space, and off is vLLM's default. */
export const EXTRA_KNOBS: readonly KnobName[] = [
  'max_num_active_seqs',
  'long_prefill_token_threshold',
  'long_prefill_token_threshold_adaptive',
  'speculation_max_batch',
  'kv_offloading_size',
  'max_local_prefill_length',
  'admission_queue_seconds',
];

/** The values that each setting may take, in order. Those that are not searched have one. */
export type CandidateSpace = { readonly [K in Knob]: readonly Candidate[K][] };

const GIB_70 = 70;

/**
 * Defaults of `vllm serve` (V1, `EngineArgs.get_batch_defaults` of vLLM 0.11): 8,192 tokens and
 * 1,024 sequences on GPUs of 70 GiB and more but A100, else 2,048 and 256. The flags of the scheduler are those that
 * the profile's engine was started with. Weights are FP16, or, of a checkpoint that is quantized, the first that the profile has.
 */
export function vllmDefaults({ gpu, engine, hostKv, weights }: EngineProfile): Candidate {
  const isLarge = gpu.memoryGiB >= GIB_70 && !/a100/i.test(gpu.name);
  return {
    maxNumSeqs: isLarge ? 1024 : 256,
    maxNumBatchedTokens: isLarge ? 8192 : 2048,
    kvBudgetFraction: 1,
    speculationDepth: 0,
    weights: weights.FP16 === undefined ? (Object.keys(weights)[0] as WeightPrecision) : 'FP16',
    prefixCaching: true,
    split: false,
    priority: false,
    maxNumActiveSeqs: 0,
    longPrefillTokenThreshold: engine.longPrefillTokenThreshold ?? 0,
    longPrefillTokenThresholdAdaptive: engine.longPrefillTokenThresholdAdaptive ?? false,
    speculationMaxBatch: 0,
    kvOffloadingGiB: hostKv?.sizeGiB ?? 0,
    maxLocalPrefillLength: 0,
    admissionQueueSeconds: 0,
  };
}

/** What `tune` searches; the settings of `EXTRA_KNOBS` only where they are named. */
export const TUNE_SPACE = {
  max_num_seqs: [8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024],
  max_num_batched_tokens: [256, 512, 1024, 2048, 4096, 8192, 16384],
  kv_fraction: [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1],
  speculation: [0, 1, 2, 3, 4, 5, 6, 7, 8],
  quantization: WEIGHT_PRECISIONS,
  prefix_caching: [true, false],
  split: [false, '1:1'],
  priority: [false, true],
  // The last is off: the most of each.
  max_num_active_seqs: [8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 0],
  long_prefill_token_threshold: [64, 128, 256, 512, 1024, 2048, 4096, 0],
  long_prefill_token_threshold_adaptive: [false, true],
  speculation_max_batch: [1, 2, 4, 8, 16, 32, 64, 128, 0],
  kv_offloading_size: [0, 16, 64, 256],
  max_local_prefill_length: [0, 256, 1024, 4096],
  admission_queue_seconds: [0, 2, 5, 15, 30],
  router: ['least_loaded'],
  replicas: [1, 2, 3, 4, 5, 6, 7, 8],
  // Requests in flight on an engine.
  autoscaler: [2, 4, 8, 16, 32, 64].map((target) => ({ requests_in_flight: target, down_seconds: 300 })),
} as const satisfies SearchSpace;

/**
 * Values to search on a profile, and settings that stay as they are by default, with the reason: they change nothing there or are
 * not named.
 *
 * @param limits.space those that are not in it stay at vLLM's defaults
 * @param limits.minQuality least accuracy, relative to FP16, that weights may have
 * @param limits.hasPrefixes whether the traffic shares prefixes
 * @param limits.hasClasses whether its requests have priority classes
 * @param limits.mostReplicas engines that may serve
 * @throws TuningError `EMPTY_SEARCH_SPACE`
 */
export function profileSpaceOf(
  profile: EngineProfile,
  limits: { readonly space: SearchSpace } & Readonly<Record<'minQuality' | 'mostReplicas', number>> &
    Readonly<Record<'hasPrefixes' | 'hasClasses', boolean>>,
): { readonly values: CandidateSpace; readonly left: Readonly<Partial<Record<KnobName, string>>> } {
  const { space, minQuality, hasPrefixes, hasClasses, mostReplicas } = limits;
  const defaults = vllmDefaults(profile);
  const because = (holds: boolean, reason: string) => (holds ? reason : undefined);
  const noDraft = because(profile.speculation === null, 'the profile has no draft');
  const noPrefixes = because(!hasPrefixes, 'no prefix of the traffic is known');
  const isOneDepth = because(
    (profile.parallel?.data ?? 1) > 1,
    'with data parallelism vLLM drafts the same for all batches',
  );
  const changesNothing: Partial<Record<KnobName, string | undefined>> = {
    speculation: noDraft,
    prefix_caching: noPrefixes,
    kv_offloading_size: noPrefixes,
    split: because(mostReplicas === 1, 'one engine serves'),
    max_local_prefill_length: because(mostReplicas === 1, 'one engine serves'),
    priority: because(!hasClasses, 'the requests have no classes'),
    admission_queue_seconds: because(!hasClasses, 'the requests have no classes'),
    speculation_max_batch: noDraft ?? isOneDepth,
  };
  const names = Object.keys(KNOB_NAMES) as KnobName[];
  const left = names.flatMap((name) => {
    const reason = space[name] === undefined ? 'not named' : changesNothing[name];
    return reason === undefined ? [] : [[name, reason] as const];
  });
  const isLeft = Object.fromEntries(left);
  const precisions = precisionsOf(profile, minQuality);
  const values = names.map((name) => {
    if (isLeft[name] !== undefined) return [KNOB_NAMES[name], [defaults[KNOB_NAMES[name]]]];
    const found =
      name === 'quantization' ? precisions.filter((each) => space[name]!.includes(each)) : space[name]!;
    if (found.length > 0) return [KNOB_NAMES[name], found];
    throw new TuningError(
      'EMPTY_SEARCH_SPACE',
      `no weights are left: expected some of ${precisions.join(', ')}, which ${profile.name} has with an accuracy of at least ${minQuality}, got ${space[name]!.join(', ')}`,
    );
  });
  return { values: Object.fromEntries(values), left: isLeft };
}

/** vLLM's defaults with the first value of each setting that the space does not leave at its default. */
export function homeOf(values: CandidateSpace, defaults: Candidate): Candidate {
  const home = (Object.keys(values) as Knob[]).map((knob) => {
    const allowed: readonly Candidate[Knob][] = values[knob];
    return [knob, allowed.includes(defaults[knob]) ? defaults[knob] : allowed[0]];
  });
  return Object.fromEntries(home);
}

/** The values by their names in JSON. */
export function namedValues(values: CandidateSpace): SearchSpace {
  return Object.fromEntries(Object.entries(KNOB_NAMES).map(([name, knob]) => [name, values[knob]]));
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
    maxLocalPrefillLength: unless('maxLocalPrefillLength', candidate.split === false, 0),
  };
}

/** Transfers over PCIe 4.0 with 16 lanes, GB/s. */
export const HOST_GBPS = 25;

/** A profile of an engine that was started with the candidate's flags of the scheduler, and its memory of the host. */
export function startedWith(profile: EngineProfile, candidate: Candidate): EngineProfile {
  const { speculationDepth, speculationMaxBatch: last } = candidate;
  const { longPrefillTokenThreshold, longPrefillTokenThresholdAdaptive } = candidate;
  const { kvOffloadingGiB: sizeGiB } = candidate;
  const { gigabytesPerSecond = HOST_GBPS } = profile.hostKv ?? {};
  return {
    ...profile,
    hostKv: sizeGiB > 0 ? { sizeGiB, gigabytesPerSecond } : undefined,
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
    (candidate.prefixCaching || candidate.kvOffloadingGiB === 0) &&
    kvPoolBlocks(profile, weights, speculationDepth > 0, kvBudgetFraction) >= 1
  );
}

export function emptySpace(
  { name }: EngineProfile,
  { maxNumBatchedTokens, maxNumSeqs }: CandidateSpace,
): TuningError {
  return new TuningError(
    'EMPTY_SEARCH_SPACE',
    `no engine of ${name} starts with settings of the space: expected KV that fits, and max_num_batched_tokens (${maxNumBatchedTokens.join(', ')}) of at least max_num_seqs (${maxNumSeqs.join(', ')})`,
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
    .map(([name, knob]) => {
      const value = candidate[knob];
      return `${name} ${typeof value === 'boolean' ? (value ? 'on' : 'off') : value}`;
    });
  return parts.length === 0 ? 'as vLLM’s defaults' : parts.join(', ');
}

/** A prime for each setting, in the order of `KNOB_NAMES`. */
const BASES = [2, 3, 7, 5, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47];

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
    const chosen = Object.values(KNOB_NAMES).map((knob, k) => {
      const values = space[knob];
      return [knob, values[Math.floor(radicalInverse(point, BASES[k]) * values.length)]];
    });
    const candidate = withoutIdle(space, Object.fromEntries(chosen));
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
