import { EnvironmentError, type ResetOptions } from '@servegym/openenv/definition';
import { z } from 'zod';
import { readSeed } from '../scenario.ts';
import { type TaskHead, Tasks } from '../tasks.ts';
import type { Knob } from './schema.ts';
import shipped from './tasks.json' with { type: 'json' };

/** Ids of the tasks, as the wire has them. */
export const GYM_TASK_IDS = [1, 2, 3] as const;
export type GymTaskId = (typeof GYM_TASK_IDS)[number];

/** Prompt lengths, tokens. */
export type PromptDistribution = { readonly from: number; readonly to: number } & (
  | { readonly kind: 'uniform' }
  | { readonly kind: 'lognormal'; readonly mu: number; readonly sigma: number }
);

/** Times of higher rate. The first begins at a random step, so that it cannot be learned by heart. */
interface Bursts {
  /** Arrivals a second. */
  readonly rate: number;
  /** Steps from the begin of one to the begin of the next. */
  readonly period: number;
  /** Steps that one lasts. */
  readonly steps: number;
}

/** Weights of the reward `alpha T - beta L - gamma V - delta C`. */
export type RewardWeights = Readonly<Record<keyof z.output<typeof rewardConfigSchema>, number>>;

/** One task of `inferencegym`. All that makes it what it is stands in its file. */
export interface GymTask extends Omit<TaskHead, 'id'> {
  readonly id: GymTaskId;
  /** Other name of the id, for people. */
  readonly slug: string;
  /** Knobs that act; the others stay at their defaults whatever an action says. */
  readonly activeKnobs: readonly Knob[];
  /** Arrivals a second outside of bursts. */
  readonly arrivalRate: number;
  readonly bursts: Bursts | null;
  /** A mixture; the shares sum to 1. */
  readonly prompts: readonly { readonly share: number; readonly lengths: PromptDistribution }[];
  /** Output of each request, tokens. */
  readonly outputTokens: number;
  /** Shares of interactive, batch and best-effort requests. */
  readonly classShares: readonly [number, number, number];
  /** Longest time to first token of each class, ms. */
  readonly sloMs: readonly [number, number, number];
  /** Memory that the server should stay within, GB; `null`: only what it must (40 GB). */
  readonly memoryLimitGb: number | null;
  /** Budget of an episode, US cents; `null`: none. */
  readonly costBudget: number | null;
  /** Acceptance of the first draft token of the simplest prompt. */
  readonly acceptanceBase: number;
  readonly reward: RewardWeights;
}

/** The tasks by their ids. */
export const GYM_TASKS = shipped.tasks as unknown as Readonly<Record<GymTaskId, GymTask>>;

export const gymTasks = new Tasks<GymTask, GymTaskId>(GYM_TASKS);

/** The seed of an episode whose reset names none, as in InferenceGym. */
const UNNAMED_SEED = 42;

const MOST_WEIGHT = 10;

/** A schema of its own for each: JSON Schema gives them titles by their names. */
const weight = () => z.number().min(0).max(MOST_WEIGHT).optional();

const rewardConfigSchema = z
  .strictObject({ alpha: weight(), beta: weight(), gamma: weight(), delta: weight() })
  .meta({
    description: 'Weights of the reward in place of the task’s: alpha T - beta L - gamma V - delta C',
  });

/** Own options of `reset`. The task is 1, 2 or 3; its digit as text and its slug mean the same. */
export const gymResetOptions = z.object({
  task_id: z.preprocess(taskIdOf, z.literal(GYM_TASK_IDS)).default(1).meta({ description: 'The task' }),
  seed: z
    .int()
    .min(0)
    .default(UNNAMED_SEED)
    .meta({ description: 'Seed of arrivals, prompts, classes and jitter' }),
  config: rewardConfigSchema.optional(),
});

/** The task of `task_id`; the first when it is absent. @throws EnvironmentError `UNKNOWN_TASK` */
export function chooseGymTask(options: ResetOptions): GymTask {
  const asked = options.task_id ?? 1;
  const id = taskIdOf(asked);
  const task = Object.values(GYM_TASKS).find((known) => known.id === id);
  if (task !== undefined) return task;
  const slugs = Object.values(GYM_TASKS).map(({ slug }) => slug);
  throw new EnvironmentError(
    'UNKNOWN_TASK',
    `Expected \`task_id\` to be ${GYM_TASK_IDS.join(', ')} or ${slugs.join(', ')}, got \`${String(asked)}\``,
  );
}

/** @throws EnvironmentError `INVALID_SEED` */
export function readGymSeed({ seed = UNNAMED_SEED }: ResetOptions): number {
  return readSeed({ seed });
}

/** The task's weights with those of `config` in their place. @throws EnvironmentError `INVALID_CONFIG` */
export function readRewardWeights({ config }: ResetOptions, task: GymTask): RewardWeights {
  if (config === undefined || config === null) return task.reward;
  const reading = rewardConfigSchema.safeParse(config);
  if (reading.success) {
    const given = Object.entries(reading.data).filter(([, value]) => value !== undefined);
    return { ...task.reward, ...Object.fromEntries(given) };
  }
  throw new EnvironmentError(
    'INVALID_CONFIG',
    `Expected \`config\` to have some of alpha, beta, gamma and delta, each from 0 to ${MOST_WEIGHT}, got ${JSON.stringify(config)}`,
  );
}

/** The id that a digit or a slug stands for; anything else as it is. */
function taskIdOf(sent: unknown): unknown {
  if (typeof sent !== 'string') return sent;
  if (/^[0-9]$/.test(sent)) return Number(sent);
  return Object.values(GYM_TASKS).find(({ slug }) => slug === sent)?.id ?? sent;
}
