import { readFileSync } from 'node:fs';
import type { EnvironmentDefinition } from '@servegym/openenv/definition';
import { z } from 'zod';
import { binsOf } from '../feature.ts';
import type { DefinitionOptions, Extras, RegisteredEnvironment } from '../registry.ts';
import { SEED_SPLITS, type SeedSplit } from '../scenario.ts';
import { episodeSession } from '../window-environment.ts';
import { GymEpisode } from './gym-episode.ts';
import { gradeGymEpisode, MEMORY_LIMIT_EFFECT } from './gym-grader.ts';
import {
  chooseGymTask,
  GYM_TASK_IDS,
  type GymTask,
  gymResetOptions,
  gymTasks,
  readGymSeed,
  readRewardWeights,
} from './gym-tasks.ts';
import { calibrateTask, shippedWorld } from './gym-world.ts';
import {
  EPISODE_STEPS,
  GYM_DEFAULT_ACTION,
  GYM_FEATURES,
  type GymAction,
  type GymObservation,
  type GymState,
  gymActionSchema,
  gymObservationSchema,
  gymStateSchema,
  KNOBS,
} from './schema.ts';
import { promptBucket } from './table/table-columns.ts';

/** Details beside an observation: `metadata`, which HTTP answers also call `info`. */
export type StepInfo = ReturnType<typeof stepInfo>;

function stepInfo(episode: GymEpisode) {
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
    /** The configuration in force: knobs that the task masks have their defaults. */
    applied_action: episode.action,
    reward_components: { ...terms },
    out_of_memory: episode.outOfMemory,
    rejected_requests: episode.rejected,
  };
}

/** Changes with everything that changes episodes or grades: dynamics, tasks, grader, the table that comes with the package. */
const VERSION = '1.3.0';

/** State of an episode; without one, the state before the first reset. */
function stateOf(episode: GymEpisode | null): GymState {
  return {
    task_id: episode?.task.id ?? 1,
    seed: episode?.seed ?? 0,
    cumulative_reward: episode?.totals.reward ?? 0,
    done: episode?.done ?? false,
    workload_phase: episode?.phase ?? 'warmup',
  };
}

const worldOf = async ({ table }: DefinitionOptions) => table?.world ?? shippedWorld();

/** Run an LLM server that a table of measurements describes: see it each second, and set up to five knobs for the next. */
function definition(
  options: DefinitionOptions = {},
): EnvironmentDefinition<GymAction, GymObservation, GymState> {
  const { table } = options;
  return {
    id: 'inferencegym',
    version: table?.hash === undefined ? VERSION : `${VERSION}+table.${table.hash.slice(0, 12)}`,
    name: 'inferencegym',
    description:
      'Run an LLM inference server that a table of measurements describes: each second shows queue, latency, memory and cost; the action sets KV budget, speculation, batch size, prefill disaggregation and quantization for the next.',
    readme: readFileSync(new URL('./readme.md', import.meta.url), 'utf8'),
    action: gymActionSchema,
    observation: gymObservationSchema,
    state: gymStateSchema,
    resetOptions: gymResetOptions,
    tasks: gymTasks.all().map(describeTask),
    splits: Object.entries(SEED_SPLITS).map(([name, { first, last }]) => {
      const seeds = last - first + 1;
      return {
        name,
        type: name as SeedSplit,
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
    create: () =>
      episodeSession({
        async begin(reset) {
          const task = chooseGymTask(reset);
          const seed = readGymSeed(reset);
          const weights = readRewardWeights(reset, task);
          return new GymEpisode(task, seed, await worldOf(options), weights);
        },
        play: (episode, action) => episode.step(action),
        length: () => `${EPISODE_STEPS} steps`,
        report: stepInfo,
        stateOf,
      }),
    grade: async (record) => gradeGymEpisode(await worldOf(options), record),
  };
}

function describeTask(task: GymTask) {
  const { id, name, difficulty, description, slug, activeKnobs, sloMs, memoryLimitGb } = task;
  return {
    id,
    name,
    difficulty,
    description,
    slug,
    active_actions: activeKnobs,
    masked_actions: KNOBS.filter((knob) => !activeKnobs.includes(knob)),
    episode_length: EPISODE_STEPS,
    slo_ms: { interactive: sloMs[0], batch: sloMs[1], best_effort: sloMs[2] },
    memory_limit_gb: memoryLimitGb,
    memory_limit_effect: memoryLimitGb === null ? null : MEMORY_LIMIT_EFFECT,
    cost_budget: task.costBudget,
    reward_weights: task.reward,
    default_action: GYM_DEFAULT_ACTION,
  };
}

/** A server that a table of measurements describes, whose five knobs are set once a second. */
export const inferencegym = {
  id: 'inferencegym',
  version: VERSION,
  takes: ['table'],
  definition,
  prepare: async (options) => (await worldOf(options)).prepare(),
  tasks: gymTasks,
  actionSchema: gymActionSchema,
  knobs: KNOBS,
  bins: binsOf(gymActionSchema),
  features: GYM_FEATURES,
  serverFeatures: [],
  shifts: [],
  resetOptions: () => gymResetOptions,
  choose: chooseGymTask,
  initialAction: () => GYM_DEFAULT_ACTION,
  steps: () => EPISODE_STEPS,
  rewardWeights: ({ reward }) => reward,
  grade: async (record, options = {}) => gradeGymEpisode(await worldOf(options), record),
  defaultAction: GYM_DEFAULT_ACTION,
  episodeSteps: EPISODE_STEPS,
  /** The table that comes with the package. */
  shippedWorld,
  calibrate: calibrateTask,
} as const satisfies RegisteredEnvironment<GymAction, GymObservation, GymState, GymTask> & Extras;
