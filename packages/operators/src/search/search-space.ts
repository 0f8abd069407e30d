import { type EngineProfile, ROUTER_POLICIES, WEIGHT_PRECISIONS } from '@servegym/simulator';
import { z } from 'zod';
import type { SplitRatio } from './candidate.ts';
import { TuningError } from './slo.ts';

const whole = z.int().min(1).max(65_536);
/** Of the values of a dimension. */
const NO = 'at least one, got none';
/** 0 turns it off. */
const orOff = z.int().min(0).max(65_536);

const ratio = z.string().regex(/^[1-9]\d?:[1-9]\d?$/);

/** Values of each setting of an engine, and what their effect rests on. */
export const SETTINGS = {
  max_num_seqs: whole.describe('schedule: as vLLM’s scheduler'),
  max_num_batched_tokens: whole.describe('schedule: as vLLM’s scheduler'),
  kv_fraction: z.number().gt(0).max(1).describe('share of the memory that weights and draft leave'),
  speculation: z.int().min(0).max(8).describe('draft tokens: acceptance measured on public data sets'),
  quantization: z.enum(WEIGHT_PRECISIONS).describe('weights: the profile says how each was made'),
  prefix_caching: z.boolean().describe('schedule: as vLLM’s scheduler'),
  split: z
    .union([z.literal(false), ratio.transform((text) => text as SplitRatio)])
    .describe('engines that prefill to those that decode; the transfer is that of the profile'),
  priority: z.boolean().describe('schedule: as vLLM’s scheduler'),
  max_num_active_seqs: orOff.describe('schedule: as vLLM’s scheduler'),
  long_prefill_token_threshold: orOff.describe('schedule: as vLLM’s scheduler'),
  long_prefill_token_threshold_adaptive: z.boolean().describe('schedule: as vLLM’s scheduler'),
  speculation_max_batch: orOff.describe('largest batch that drafts: schedule as vLLM’s scheduler'),
  kv_offloading_size: z.number().min(0).max(1e6).describe('host memory for KV, GiB; loads over PCIe 4.0'),
  max_local_prefill_length: orOff.describe('longest prompt that is prefilled where it is decoded, tokens'),
  admission_queue_seconds: z.number().min(0).max(3600).describe('queue above which late classes are refused'),
} as const;

/** A name, or weights of `kv_aware`. */
export const router = z
  .union([
    z.enum(ROUTER_POLICIES),
    z.strictObject({
      prefill_load_scale: z.number().min(0).optional(),
      overlap_score_credit: z.number().min(0).optional(),
    }),
  ])
  .describe('routing of requests where several engines serve');
export type RouterChoice = z.output<typeof router>;

/** Kubernetes' autoscaler: requests in flight that each engine should have, and how long it waits before it takes one away, s. */
export const autoscaler = z
  .strictObject({
    requests_in_flight: z.number().positive().max(65_536),
    down_seconds: z.number().min(0).max(3600).default(300),
  })
  .describe('engines that start and stop with the requests in flight');
export type AutoscalerChoice = z.output<typeof autoscaler>;

export function routerName(chosen: RouterChoice): string {
  if (typeof chosen === 'string') return chosen;
  const weights = Object.entries(chosen).map((each) => each.join(' '));
  return `kv_aware with ${weights.join(' and ')}`;
}

/** Dimensions of an engine that come with its profile: other values need another profile. */
const PROFILE_DIMENSIONS = {
  gpu: z.string(),
  tensor_parallel_size: whole,
  data_parallel_size: whole,
  pipeline_parallel_size: whole,
  expert_parallel_size: whole,
} as const;
const DIMENSIONS = {
  ...{ ...PROFILE_DIMENSIONS, ...SETTINGS },
  ...{ router, replicas: whole.max(256), autoscaler },
} as const;
export type DimensionName = keyof typeof DIMENSIONS;
const DIMENSION_NAMES = Object.keys(DIMENSIONS) as DimensionName[];

/** Values of each dimension that is searched; one that is left out stays as it is by default. */
export type SearchSpace = {
  readonly [Name in DimensionName]?: readonly z.output<(typeof DIMENSIONS)[Name]>[];
};

const schema = z.strictObject(
  Object.fromEntries(DIMENSION_NAMES.map((name) => [name, z.array(DIMENSIONS[name]).min(1, NO).optional()])),
);

/** JSON Schema of a space with the dimensions of a question. */
export function searchSpaceSchema(known: SearchSpace): object {
  const names = Object.keys(known).map((name) => [name, true as const]);
  return z.toJSONSchema(schema.pick(Object.fromEntries(names)), { io: 'input' });
}

/** A space from JSON. @param known dimensions of the question. @throws TuningError `INVALID_SEARCH_SPACE` */
export function parseSearchSpace(text: string, source: string, known: SearchSpace): SearchSpace {
  const fail = (expected: string) =>
    new TuningError('INVALID_SEARCH_SPACE', `${source}: expected ${expected}`);
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw fail('JSON such as {"max_num_seqs": [64, 128]}');
  }
  const { error, data } = schema.safeParse(json);
  if (error === undefined) {
    const names = Object.keys(data) as DimensionName[];
    const unknown = names.find((name) => !(name in known));
    if (names.length > 0 && unknown === undefined) return data;
    throw fail(`some of ${Object.keys(known).join(', ')}, got ${unknown ?? 'an empty space'}`);
  }
  const [{ path, message, code }] = error.issues;
  throw code === 'unrecognized_keys' || path.length === 0
    ? fail(`an object with some of ${Object.keys(known).join(', ')}: ${message}`)
    : fail(`values of ${path.join('.')} as \`--search print\` has them: ${message}`);
}

/** Values of the dimensions that come with a profile. */
function placed({ gpu, parallel = {} }: EngineProfile) {
  const { data = 1, pipeline = 1, expert = 1 } = parallel;
  return {
    gpu: gpu.name,
    tensor_parallel_size: gpu.count / data / pipeline,
    data_parallel_size: data,
    pipeline_parallel_size: pipeline,
    expert_parallel_size: expert,
  };
}

/** The profiles in a space. @throws TuningError `EMPTY_SEARCH_SPACE` with the values there are */
export function profilesIn(space: SearchSpace, profiles: readonly EngineProfile[]): EngineProfile[] {
  const found = profiles.filter((profile) =>
    Object.entries(placed(profile)).every(([name, value]) => {
      const values: readonly unknown[] | undefined = space[name as keyof typeof PROFILE_DIMENSIONS];
      return values === undefined || values.includes(value);
    }),
  );
  if (found.length > 0) return found;
  const known = Object.entries(profileSpace(profiles)).map(
    ([name, values]) => `${name} ${values.join(', ')}`,
  );
  const message = `no profile is in the space; the profiles have ${known.join('; ')}`;
  throw new TuningError('EMPTY_SEARCH_SPACE', message);
}

/** Values of the dimensions that come with profiles. */
export function profileSpace(profiles: readonly EngineProfile[]): SearchSpace {
  const all = profiles.map(placed);
  const names = Object.keys(PROFILE_DIMENSIONS) as (keyof typeof PROFILE_DIMENSIONS)[];
  return Object.fromEntries(names.map((name) => [name, [...new Set(all.map((each) => each[name]))].sort()]));
}

/** Reasons for dimensions that are not in a space, beside that nobody named them. */
const UNNAMED: Readonly<Partial<Record<DimensionName, string>>> = {
  ...Object.fromEntries(Object.keys(PROFILE_DIMENSIONS).map((name) => [name, 'comes with the profile'])),
  replicas: 'as many as the traffic takes',
  autoscaler: 'engines always run; `--search default,autoscaler` tries some that start and stop',
};

/** The same with what all profiles leave out and what has one value apart. */
export function searchedSpace(
  space: SearchSpace,
  left: readonly Readonly<Partial<Record<DimensionName, string>>>[],
) {
  const reasonFor = (name: DimensionName): string | undefined =>
    left.every((each) => each[name] !== undefined) ? left[0][name] : undefined;
  const names = DIMENSION_NAMES.filter((name) => reasonFor(name) === undefined && space[name] !== undefined);
  const reasons = DIMENSION_NAMES.filter((name) => !names.includes(name)).map((name) => {
    return [name, reasonFor(name) ?? UNNAMED[name] ?? 'not named'];
  });
  return {
    space: Object.fromEntries(names.map((name) => [name, space[name]])),
    notSearched: Object.fromEntries(reasons),
  };
}
