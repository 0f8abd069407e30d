import { readFileSync } from 'node:fs';
import {
  defineEnvironment,
  type Environment,
  type EnvironmentDefinition,
  EnvironmentError,
  type ResetOptions,
  type StepResult,
} from '@servegym/openenv/definition';
import { z } from 'zod';
import type { DefinitionOptions } from '../registered-environment.ts';
import { SEED_SPLITS, splitOfSeed } from '../splits.ts';
import { GymEpisode } from './gym-episode.ts';
import { gradeGymEpisode, MEMORY_LIMIT_EFFECT } from './gym-grader.ts';
import type { RewardTerms } from './gym-reward.ts';
import { GYM_TASK_IDS, GYM_TASKS } from './gym-tasks.ts';
import type { StepMetrics } from './gym-totals.ts';
import { type GymWorld, shippedWorld } from './gym-world.ts';
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
  type Phase,
} from './schema.ts';
import { promptBucket } from './table/table-columns.ts';

/** Details beside an observation: `metadata`, which HTTP answers also call `info`. */
export interface StepInfo {
  readonly timestep: number;
  readonly episode_length: number;
  readonly metrics: StepMetrics;
  readonly workload: {
    readonly arrival_rate: number;
    readonly mean_prompt_len: number;
    readonly prompt_len_bucket: number;
    readonly queue_depth: number;
    readonly priority_distribution: readonly number[];
    readonly is_burst: boolean;
    readonly phase: Phase;
  };
  /** The configuration in force: knobs that the task masks have their defaults. */
  readonly applied_action: GymAction;
  readonly reward_components: RewardTerms;
  readonly out_of_memory: boolean;
  readonly rejected_requests: number;
}

function stepInfo(episode: GymEpisode): StepInfo {
  const { metrics, terms, workload, timestep } = episode;
  const observation = episode.observation();
  return {
    timestep,
    episode_length: EPISODE_STEPS,
    metrics: { ...metrics },
    workload: {
      arrival_rate: observation.arrival_rate,
      mean_prompt_len: observation.mean_prompt_len,
      prompt_len_bucket: promptBucket(observation.mean_prompt_len),
      queue_depth: observation.queue_depth,
      priority_distribution: observation.priority_distribution,
      is_burst: workload.isBurst(Math.max(0, timestep - 1)),
      phase: episode.phase,
    },
    applied_action: {
      kv_budget: episode.kvBudget,
      spec_length: episode.specLength,
      batch_size: episode.batchSize,
      prefill_disagg: episode.prefillDisagg,
      quant_tier: episode.quantTier,
    },
    reward_components: { ...terms },
    out_of_memory: episode.outOfMemory,
    rejected_requests: episode.rejected,
  };
}

/** Changes with everything that changes episodes or grades: dynamics, tasks, grader, the table that comes with the package. */
export const GYM_VERSION = '1.3.0';

/** One session of `inferencegym`. */
class InferenceGym implements Environment<GymAction, GymObservation, GymState> {
  readonly #world: () => Promise<GymWorld>;
  #episode: GymEpisode | null = null;

  constructor(world: () => Promise<GymWorld>) {
    this.#world = world;
  }

  async reset(options: ResetOptions): Promise<StepResult<GymObservation>> {
    const task = chooseGymTask(options);
    const seed = readGymSeed(options);
    const weights = readRewardWeights(options, task);
    const episode = new GymEpisode(task, seed, await this.#world(), weights);
    this.#episode = episode;
    return {
      observation: episode.observation(),
      reward: null,
      done: false,
      metadata: { ...stepInfo(episode) },
    };
  }

  step(action: GymAction): StepResult<GymObservation> {
    const episode = this.#episode;
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
    const episode = this.#episode;
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

/** Run an LLM server that a table of measurements describes: see it each second, and set up to five knobs for the next. */
export function inferenceGym(
  table: DefinitionOptions['table'],
): EnvironmentDefinition<GymAction, GymObservation, GymState> {
  const world = async () => table?.world ?? shippedWorld();
  return defineEnvironment<GymAction, GymObservation, GymState>({
    id: 'inferencegym',
    version: table?.hash === undefined ? GYM_VERSION : `${GYM_VERSION}+table.${table.hash.slice(0, 12)}`,
    name: 'inferencegym',
    description:
      'Run an LLM inference server that a table of measurements describes: each second shows queue, latency, memory and cost; the action sets KV budget, speculation, batch size, prefill disaggregation and quantization for the next.',
    readme: readFileSync(new URL('./readme.md', import.meta.url), 'utf8'),
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
    splitOf: (options) => splitOfSeed(readGymSeed(options)),
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
