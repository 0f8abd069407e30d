import {
  defineEnvironment,
  type Environment,
  type EnvironmentDefinition,
  EnvironmentError,
  type ResetOptions,
  type StepResult,
} from '@servegym/openenv/definition';
import { z } from 'zod';
import { SEED_SPLITS } from '../llmserve/splits.ts';
import { GymEpisode } from './gym-episode.ts';
import { gradeGymEpisode, MEMORY_LIMIT_EFFECT } from './gym-grader.ts';
import { type GymWorld, shippedWorld } from './gym-world.ts';
import { INFERENCEGYM_README } from './readme.ts';
import { chooseGymTask, gymResetOptions, readGymSeed, readRewardWeights } from './reset-options.ts';
import {
  EPISODE_STEPS,
  GYM_DEFAULT_ACTION,
  type GymAction,
  type GymObservation,
  type GymState,
  gymActionSchema,
  gymObservationSchema,
  gymStateSchema,
  KNOBS,
} from './schema.ts';
import { stepInfo } from './step-info.ts';
import { GYM_TASK_IDS } from './tasks/gym-task.ts';
import { GYM_TASKS } from './tasks/gym-tasks.ts';

/** Changes with everything that changes episodes or grades: dynamics, tasks, grader, the table that comes with the package. */
const VERSION = '1.2.0';

/** One session of `inferencegym`. */
class InferenceGym implements Environment<GymAction, GymObservation, GymState> {
  private readonly world: () => Promise<GymWorld>;
  private episode: GymEpisode | null = null;

  constructor(world: () => Promise<GymWorld>) {
    this.world = world;
  }

  async reset(options: ResetOptions): Promise<StepResult<GymObservation>> {
    const task = chooseGymTask(options);
    const seed = readGymSeed(options);
    const weights = readRewardWeights(options, task);
    const episode = new GymEpisode(task, seed, await this.world(), weights);
    this.episode = episode;
    return {
      observation: episode.observation(),
      reward: null,
      done: false,
      metadata: { ...stepInfo(episode) },
    };
  }

  step(action: GymAction): StepResult<GymObservation> {
    const { episode } = this;
    if (episode === null) {
      throw new EnvironmentError('NOT_RESET', 'No episode has been started: call reset first');
    }
    if (episode.done) {
      throw new EnvironmentError(
        'EPISODE_OVER',
        `The episode ended after ${EPISODE_STEPS} steps: reset to play another`,
      );
    }
    const reward = episode.step(action);
    return {
      observation: episode.observation(),
      reward,
      done: episode.done,
      metadata: { ...stepInfo(episode) },
    };
  }

  state(): GymState {
    const { episode } = this;
    if (episode === null) {
      return { task_id: 1, seed: 0, cumulative_reward: 0, done: false, workload_phase: 'warmup' };
    }
    return {
      task_id: episode.task.id,
      seed: episode.seed,
      cumulative_reward: episode.totals.reward,
      done: episode.done,
      workload_phase: episode.phase,
    };
  }
}

/** The table that is played. */
export interface InferenceGymOptions {
  /** What the server can do. Asked for by the first episode. Default: the table that comes with the package. */
  readonly world?: () => Promise<GymWorld>;
  /** Tells a table of one's own from others: episodes on it are not those of the table that comes with the package. */
  readonly tableHash?: string;
}

/** Run an LLM server that a table of measurements describes: see it each second, and set up to five knobs for the next. */
export function inferenceGym({
  world = shippedWorld,
  tableHash,
}: InferenceGymOptions = {}): EnvironmentDefinition<GymAction, GymObservation, GymState> {
  return defineEnvironment<GymAction, GymObservation, GymState>({
    id: 'inferencegym',
    version: tableHash === undefined ? VERSION : `${VERSION}+table.${tableHash.slice(0, 12)}`,
    name: 'inferencegym',
    description:
      'Run an LLM inference server that a table of measurements describes: each second shows queue, latency, memory and cost; the action sets KV budget, speculation, batch size, prefill disaggregation and quantization for the next.',
    readme: INFERENCEGYM_README,
    action: gymActionSchema,
    observation: gymObservationSchema,
    state: gymStateSchema,
    resetOptions: gymResetOptions,
    tasks: GYM_TASK_IDS.map((id) => {
      const task = GYM_TASKS[id];
      return {
        id,
        name: task.name,
        difficulty: task.difficulty,
        description: task.description,
        slug: task.slug,
        active_actions: task.activeKnobs,
        masked_actions: KNOBS.filter((knob) => !task.activeKnobs.includes(knob)),
        episode_length: EPISODE_STEPS,
        slo_ms: { interactive: task.sloMs[0], batch: task.sloMs[1], best_effort: task.sloMs[2] },
        memory_limit_gb: task.memoryLimitGb,
        memory_limit_effect: task.memoryLimitGb === null ? null : MEMORY_LIMIT_EFFECT,
        cost_budget: task.costBudget,
        reward_weights: task.reward,
        default_action: GYM_DEFAULT_ACTION,
      };
    }),
    splits: Object.entries(SEED_SPLITS).map(([name, { first, last }]) => {
      const seeds = last - first + 1;
      return {
        name,
        type: name as keyof typeof SEED_SPLITS,
        size: GYM_TASK_IDS.length * seeds,
        task: (index) => ({
          task_id: GYM_TASK_IDS[Math.floor(index / seeds)],
          seed: first + (index % seeds),
        }),
      };
    }),
    httpFields: {
      reset: {
        schema: z.object({ episode_length: z.int() }),
        of: () => ({ episode_length: EPISODE_STEPS }),
      },
      step: {
        schema: z.object({ info: z.record(z.string(), z.unknown()) }),
        of: ({ metadata = {} }) => ({ info: metadata }),
      },
    },
    create: () => new InferenceGym(world),
    grade: async (record) => gradeGymEpisode(await world(), record),
  });
}

/** `inferencegym` on the table that comes with the package. */
export const inferencegym = inferenceGym();
