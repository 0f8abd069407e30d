import { findProfile } from '@servegym/profiles';
import type { EngineProfile } from '@servegym/simulator';
import { z } from 'zod';
import {
  complain,
  type Immutable,
  lengths,
  maskedKnobs,
  positive,
  profileOf,
  REQUEST_CLASSES,
  Tasks,
  taskHead,
} from '../tasks.ts';
import type { RequestSource } from './episode-requests.ts';
import {
  QUANTIZATION_TIERS,
  SERVE_KNOBS,
  type ServeAction,
  type ServeKnob,
  serveActionSchema,
  type TaskId,
} from './schema.ts';
import shipped from './tasks.json' with { type: 'json' };

const share = z.number().min(0).max(1);
/** Both ends of a range, the lower first; one number stands for both. Drawn uniformly, once for each occurrence. */
const range = (item: z.ZodNumber | z.ZodInt) =>
  z
    .union([z.tuple([item, item]), item.transform((both): [number, number] => [both, both])])
    .refine(([low, high]) => low <= high, 'Expected the lower end first');

/** A stretch of windows with traffic of one kind. */
const phase = z.strictObject({
  name: z.string().min(1).max(100),
  /** Weight in the draw of the next phase. */
  weight: positive.default(1),
  /** Duration, windows. */
  windows: range(z.int().min(1).max(10_000)),
  arrivalsPerSecond: range(z.number().positive().max(1000)),
  /** Standard deviation of the logarithm of a window's rate around the phase's. */
  burstiness: z.number().min(0).max(3).default(0),
  /** Share of the phase's arrivals and lengths of each class. */
  traffic: z
    .partialRecord(z.enum(REQUEST_CLASSES), z.strictObject({ share, prompt: lengths, output: lengths }))
    .refine(
      (traffic) => Math.abs(Object.values(traffic).reduce((sum, { share }) => sum + share, 0) - 1) < 1e-6,
      'Expected the shares of the classes to sum to 1',
    ),
  /** Memory that co-located tenants take on each GPU, GiB. */
  tenantGiB: range(z.number().min(0).max(1000)).default([0, 0]),
  /** Acceptance table of the profile that fits the text of this phase. Default: the task's. */
  acceptance: z.string().optional(),
  /** Reward that a unit of output quality is worth: the cost of a tier is this times (1 - its quality). */
  qualityValue: z.number().min(0).max(1000),
});
export type Phase = Immutable<z.output<typeof phase>>;

/** Time to first token and mean time per output token after it, ms; weight of a request in the SLO part of the reward. */
const objective = z.strictObject({ ttftMs: positive, tpotMs: positive, weight: positive });

/** Weights of the parts of the reward. They sum to at most 1 on either side, so that the reward stays in [-1, 1]. */
const rewardWeights = z
  .strictObject({
    throughput: share,
    slo: share,
    /** Price of the whole memory of the GPUs. What weights, draft and KV pool do not hold is worth money to the tenants. */
    memory: share,
    cost: share,
  })
  .refine(({ throughput, slo }) => throughput + slo <= 1 + 1e-9, 'Expected throughput + slo to be at most 1')
  .refine(({ memory, cost }) => memory + cost <= 1 + 1e-9, 'Expected memory + cost to be at most 1');
export type RewardWeights = Immutable<z.output<typeof rewardWeights>>;

/** One task of `llmserve` as a file holds it; what has a usual value may be left out. */
const serveTaskSchema = z
  .strictObject({
    ...taskHead,
    /** Windows of an episode. */
    windows: z.int().min(1).max(2000),
    /** Length of a window, s. */
    windowSeconds: z.number().min(0.1).max(600).default(5),
    /** Engine profile of the server's two GPUs. */
    profile: z.string(),
    /** Acceptance table of the profile that fits the traffic. */
    acceptance: z.string().default('sharegpt'),
    objectives: z.strictObject({ interactive: objective, batch: objective, best_effort: objective }),
    reward: rewardWeights,
    /** Cost of 1,000 output tokens at which the cost part is fully charged, USD. */
    referenceCostPer1k: positive,
    /** Settings of a sane operator. `reset` applies them. */
    defaultAction: serveActionSchema,
    /** For instance the precision, where a server cannot change it while it runs. */
    maskedKnobs: maskedKnobs(SERVE_KNOBS),
    /** The first of these opens every episode; the others follow in random order, never twice in a row. */
    phases: z.array(phase).min(1).max(50),
  })
  .check((context) => {
    const { value } = context;
    const profile = profileOf(context, ['profile'], value.profile);
    if (profile === undefined) return;
    const missing = QUANTIZATION_TIERS.filter((tier) => profile.weights[tier] === undefined);
    if (missing.length > 0) {
      complain(
        context,
        ['profile'],
        `Expected a profile with all precisions; it lacks ${missing.join(', ')}`,
      );
    }
    const tables = Object.keys(profile.speculation?.survival ?? {});
    for (const [i, of] of [value, ...value.phases].entries()) {
      if (of.acceptance === undefined || tables.includes(of.acceptance)) continue;
      const path = i === 0 ? ['acceptance'] : ['phases', i - 1, 'acceptance'];
      const known = tables.join(', ') || 'it has none';
      complain(context, path, `Expected one of the profile's acceptance tables: ${known}`);
    }
  });

type ServeTaskFile = z.input<typeof serveTaskSchema>;

/** One task of `llmserve`. All that makes it what it is stands in its file. */
export type ServeTask = Immutable<z.output<typeof serveTaskSchema>> & {
  /** Source of the requests instead of the phases, which then say only whose they are. */
  readonly source?: RequestSource;
  /** A drawn server, which no profile is of: that of `profile` with times of its own. */
  readonly server?: EngineProfile;
  /** Describes the server by an estimate from what it shows, instead of by its profile. */
  readonly serverFrom?: 'metrics';
};

/** The profile of a task's server. */
export function serverOf({ server, profile }: ServeTask): EngineProfile {
  return server ?? findProfile(profile);
}

/** Says nothing at run time; it lets an editor check a task that is written in TypeScript. */
export function defineServeTask(task: ServeTaskFile): ServeTaskFile {
  return task;
}

/** The three tasks, easiest first. */
export const SERVE_TASKS = shipped.tasks as unknown as Readonly<Record<TaskId, ServeTask>>;

/** These, and those of people who play their own. */
export const serveTasks = new Tasks<ServeTask, TaskId>(SERVE_TASKS, {
  schema: serveTaskSchema,
  mark: 'phases',
});

/** The knobs that a task leaves free, in the order of the action. */
export function activeKnobs({ maskedKnobs = [] }: Pick<ServeTask, 'maskedKnobs'>): readonly ServeKnob[] {
  return SERVE_KNOBS.filter((knob) => !maskedKnobs.includes(knob));
}

/** Values of a knob that a task leaves: all of them, or, where it masks the knob, its default. */
export function unmaskedValues<Knob extends ServeKnob>(
  { defaultAction, maskedKnobs }: Pick<ServeTask, 'defaultAction' | 'maskedKnobs'>,
  knob: Knob,
  values: readonly ServeAction[Knob][],
): readonly ServeAction[Knob][] {
  return maskedKnobs?.includes(knob) ? [defaultAction[knob]] : values;
}
