import {
  BATCH_DEPTHS,
  type BatchDepth,
  DRAFTERS,
  type EngineProfile,
  type IterationLaw,
  isBatchDepths,
  KV_PRECISIONS,
  MAX_REQUEST_TOKENS,
  MOST_API_SERVERS,
  MOST_WATERMARK,
  PROFILE_STATUSES,
  WEIGHT_PRECISIONS,
} from '@servegym/simulator';
import { z } from 'zod';
import {
  checked,
  choice,
  fields,
  numberFrom,
  parseJson,
  textLike,
  trueOrFalse,
  wholeNumber,
} from './read-json.ts';

/** No iteration, and no part of one, takes a minute: a larger figure is in the wrong unit. */
const MINUTE_US = 60e6;
const LEAST_FACTOR = 0.001;
const MOST_FACTOR = 1000;
const MOST_BLOCK_TOKENS = 256;

const us = numberFrom(0, MINUTE_US);
const percent = numberFrom(0, 1000);
const share = numberFrom(0, 1);
const text = textLike();

const range = z.custom<readonly [number, number]>(
  (value) =>
    isNumbers(value) && value.length === 2 && value[0] >= 0 && value[1] >= value[0] && value[1] < Infinity,
  { error: 'two numbers [low, high], 0 <= low <= high' },
);

const factors = z.custom<NonNullable<IterationLaw['tokenFactors']>>(
  (value) =>
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((point: unknown, i) => {
      if (!isNumbers(point) || point.length !== 2) return false;
      const [count, factor] = point;
      const least = i === 0 ? 1 : value[i - 1][0] + 1;
      return Number.isInteger(count) && count >= least && factor >= LEAST_FACTOR && factor <= MOST_FACTOR;
    }),
  {
    error: `points [count, factor] by ascending whole counts from 1, factors from ${LEAST_FACTOR} to ${MOST_FACTOR}`,
  },
);

const survival = z.custom<number[]>(
  (value) =>
    isNumbers(value) &&
    value.length > 0 &&
    value.every((p, i) => p >= 0 && p <= (i === 0 ? 1 : value[i - 1])),
  { error: 'probabilities in [0, 1] that never rise' },
);

const law = fields({
  baseUs: us,
  launchBound: z.union([trueOrFalse(), z.literal('prefill')]).optional(),
  weightReadUs: numberFrom(0.001, MINUTE_US),
  experts: fields({ count: wholeNumber(1, 100_000), perToken: wholeNumber(1, 100_000), readUs: us })
    .refine(({ count, perToken }) => perToken <= count, {
      path: ['perToken'],
      error: 'a whole number from 1 to `count`',
    })
    .optional(),
  perTokenUs: numberFrom(0.000_001, MINUTE_US),
  tokenFactors: factors.optional(),
  perDecodeSequenceUs: us,
  perContextTokenNs: us,
  manySequences: fields({ above: wholeNumber(1, 1_000_000), perContextTokenNs: us }).optional(),
  sequenceFactors: factors.optional(),
  perContextTokenBesidePrefillNs: us.optional(),
  prefillLaunchUs: us.optional(),
  perPrefillAttentionNs: us,
});

const variant = fields({
  weightGiB: numberFrom(0.001, 10_000),
  law,
  status: choice(PROFILE_STATUSES),
  source: text,
  quality: share,
}).optional();

/** The order of the fields is that of written profiles. */
const engineProfile = fields({
  name: textLike(/^[a-z0-9]+(?:[.-][a-z0-9]+)*$/, 'a name such as a100-40gb-llama-3-8b'),
  gpu: fields({
    name: text,
    memoryGiB: numberFrom(1, 10_000),
    count: wholeNumber(1, 1024),
    usdPerHour: numberFrom(0, 10_000),
  }),
  parallel: fields({
    data: wholeNumber(1, 1024).optional(),
    expert: wholeNumber(1, 1024).optional(),
    pipeline: wholeNumber(1, 1024).optional(),
  }).optional(),
  model: fields({
    name: text,
    kvBytesPerToken: wholeNumber(1, 2 ** 30),
    kvCache: choice(KV_PRECISIONS).optional(),
    kvGroups: fields({
      bytesPerToken: wholeNumber(1, 2 ** 30),
      attention: z
        .array(
          fields({
            window: wholeNumber(1, MAX_REQUEST_TOKENS).optional(),
            chunk: wholeNumber(1, MAX_REQUEST_TOKENS).optional(),
          }),
        )
        .min(1),
    }).optional(),
  }),
  engine: fields({
    name: text,
    version: text,
    asyncScheduling: trueOrFalse().optional(),
    drafter: choice(DRAFTERS).optional(),
    speculationDepthPerBatchSize: z.custom<BatchDepth[]>(isBatchDepths, { error: BATCH_DEPTHS }).optional(),
    longPrefillTokenThreshold: wholeNumber(0, MAX_REQUEST_TOKENS).optional(),
    longPrefillTokenThresholdAdaptive: trueOrFalse().optional(),
    maxLoras: wholeNumber(0, 1e6).optional(),
    maxLoraRank: wholeNumber(1, 512).optional(),
    watermark: numberFrom(0, MOST_WATERMARK).optional(),
    wholePromptFits: trueOrFalse().optional(),
    prefillFirst: trueOrFalse().optional(),
    schedulerRecvInterval: wholeNumber(1, MAX_REQUEST_TOKENS).optional(),
    chunkedPrefill: trueOrFalse().optional(),
  }),
  status: choice(PROFILE_STATUSES),
  source: text,
  fit: fields({
    rows: wholeNumber(1, 1e9),
    meanErrorPercent: percent,
    worstErrorPercent: percent,
    heldOutMeanErrorPercent: percent,
    heldOutWorstErrorPercent: percent,
    command: text,
  }).nullable(),
  validity: fields({ batch: range, contextTokens: range }),
  memory: fields({
    utilization: numberFrom(0.01, 1),
    overheadGiB: numberFrom(0, 1000),
    blockTokens: wholeNumber(1, MOST_BLOCK_TOKENS).refine((tokens) => Number.isInteger(Math.log2(tokens)), {
      error: `a power of two up to ${MOST_BLOCK_TOKENS}`,
    }),
  }),
  requestOverheadMs: numberFrom(0, 10_000),
  requestOverheadJitter: share.optional(),
  requestOverheadPerTokenUs: numberFrom(0, 1e6).optional(),
  frontEnd: fields({
    processes: wholeNumber(1, MOST_API_SERVERS),
    perRequestMs: numberFrom(0, 10_000),
    perPromptTokenUs: numberFrom(0, 1e6),
    perOutputTokenUs: numberFrom(0, 1e6),
  }).optional(),
  reloadSeconds: numberFrom(0, 3600),
  hostCheckpoints: fields({
    linkGBps: numberFrom(0.01, 10_000),
    wakeSeconds: numberFrom(0, 3600),
  }).optional(),
  weights: fields({
    FP16: variant,
    FP8: variant,
    INT8: variant,
    INT4: variant,
    MXFP4: variant,
    NVFP4: variant,
  } satisfies Record<(typeof WEIGHT_PRECISIONS)[number], typeof variant>).refine(
    (weights) => Object.keys(weights).length > 0,
    { error: `at least one of ${WEIGHT_PRECISIONS.join(', ')}` },
  ),
  speculation: fields({
    method: text,
    draftGiB: numberFrom(0, 1000),
    draftBaseUs: us,
    draftPerTokenUs: us,
    draftPerContextTokenNs: us,
    verifyTokens: numberFrom(1, 1024).optional(),
    survival: z.record(z.string(), survival, { error: 'an object' }),
    source: text,
  }).nullable(),
  hostKv: fields({ sizeGiB: numberFrom(0, 1e6), gigabytesPerSecond: numberFrom(0.001, 1e6) }).optional(),
  transfer: fields({ gigabytesPerSecond: numberFrom(0.001, 1e6), setupMs: numberFrom(0, 60_000) }),
}) satisfies z.ZodType<EngineProfile>;

const dividedProfile = engineProfile.refine(
  ({ gpu, parallel: { data = 1, pipeline = 1 } = {} }) => gpu.count % (data * pipeline) === 0,
  { path: ['parallel'], error: 'data times pipeline that divides the number of GPUs' },
);

/**
 * Reads an engine profile from its JSON text.
 *
 * @param source File name for the messages.
 * @throws {ProfileError} naming the first field that is missing, unknown, of another type or absurd.
 */
export function parseEngineProfile(text: string, source: string): EngineProfile {
  return checked(dividedProfile, parseJson(text, source, 'PROFILE_SYNTAX', 'a profile in JSON'), source);
}

/**
 * A profile that is known to be valid, with its fields in the order of the schema: whoever tries its precisions, or
 * prints it, depends on it.
 */
export function inOrder(profile: EngineProfile): EngineProfile {
  return ordered(
    { ...profile, weights: ordered(profile.weights, WEIGHT_PRECISIONS) },
    Object.keys(engineProfile.shape),
  );
}

function ordered<T extends object>(object: T, keys: readonly string[]): T {
  return Object.fromEntries(
    keys.flatMap((key) => (key in object ? [[key, object[key as keyof T]]] : [])),
  ) as T;
}

function isNumbers(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every((number) => typeof number === 'number');
}
