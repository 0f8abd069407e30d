import { EnvironmentError, type ResetOptions } from '@servegym/openenv/definition';
import { z } from 'zod';
import { readSeed } from '../scenario.ts';
import { GYM_TASK_IDS, GYM_TASKS, type GymTask, type GymTaskId, type RewardWeights } from './gym-tasks.ts';

/** The seed of an episode whose reset names none, as in InferenceGym. */
const UNNAMED_SEED = 42;

const MOST_WEIGHT = 10;

/** A schema of its own for each: JSON Schema gives them titles by their names. */
const weight = () => z.number().min(0).max(MOST_WEIGHT).optional();

/** Weights of the reward that a reset may override. */
const rewardConfigSchema = z
  .strictObject({ alpha: weight(), beta: weight(), gamma: weight(), delta: weight() })
  .meta({
    description: 'Weights of the reward in place of the task’s: alpha T - beta L - gamma V - delta C',
  });

const SLUGS = Object.values(GYM_TASKS).map(({ slug }) => slug);

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
  const task = (GYM_TASK_IDS as readonly unknown[]).includes(id) ? GYM_TASKS[id as GymTaskId] : undefined;
  if (task !== undefined) return task;
  throw new EnvironmentError(
    'UNKNOWN_TASK',
    `Expected \`task_id\` to be ${GYM_TASK_IDS.join(', ')} or ${SLUGS.join(', ')}, got \`${String(asked)}\``,
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
