import type { Extras, RegisteredEnvironment } from '../registered-environment.ts';
import { GYM_VERSION, inferenceGym } from './environment.ts';
import { gradeGymEpisode } from './gym-grader.ts';
import { type GymTask, gymTasks } from './gym-tasks.ts';
import { calibrateTask, shippedWorld } from './gym-world.ts';
import { chooseGymTask, gymResetOptions } from './reset-options.ts';
import {
  EPISODE_STEPS,
  GYM_ACTION_BINS,
  GYM_DEFAULT_ACTION,
  GYM_FEATURES,
  type GymAction,
  type GymObservation,
  type GymState,
  gymActionSchema,
  KNOBS,
} from './schema.ts';

/** A server that a table of measurements describes, whose five knobs are set once a second. */
export const inferencegym = {
  id: 'inferencegym',
  version: GYM_VERSION,
  takes: ['table'],
  definition: ({ table } = {}) => inferenceGym(table),
  prepare: async ({ table }) => (table?.world ?? (await shippedWorld())).prepare(),
  tasks: gymTasks,
  actionSchema: gymActionSchema,
  knobs: KNOBS,
  bins: GYM_ACTION_BINS,
  features: GYM_FEATURES,
  serverFeatures: [],
  shifts: [],
  resetOptions: () => gymResetOptions,
  choose: chooseGymTask,
  initialAction: () => GYM_DEFAULT_ACTION,
  steps: () => EPISODE_STEPS,
  rewardWeights: ({ reward }) => reward,
  grade: async (record, { table } = {}) => gradeGymEpisode(table?.world ?? (await shippedWorld()), record),
  defaultAction: GYM_DEFAULT_ACTION,
  episodeSteps: EPISODE_STEPS,
  /** The table that comes with the package. */
  shippedWorld,
  calibrate: calibrateTask,
} as const satisfies RegisteredEnvironment<GymAction, GymObservation, GymState, GymTask> & Extras;
