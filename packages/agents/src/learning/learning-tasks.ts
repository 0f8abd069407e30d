import {
  FleetEpisode,
  type FleetTask,
  GymEpisode,
  type GymTask,
  GymWorld,
  inferencegym,
  llmserve,
  SEED_SPLITS,
  ServeEpisode,
  type ServeScenario,
  type ServeTask,
  type TableRows,
  type TaskCalibration,
  TraceTable,
} from '@servegym/environments';
import type { OwnTable } from '../core/playable.ts';
import {
  FLEET_LEARNER,
  GYM_LEARNER,
  knownTask,
  type Learner,
  manyServersFeatures,
  networkMetadata,
  SERVE_LEARNER,
} from './learners.ts';
import { EpisodeEnvironment, type LearningEnvironment, type LearningTask } from './learning-environment.ts';
import { PPO_DEFAULTS, type PpoRecipe } from './ppo.ts';
import { encodeActor } from './trained-actor.ts';

/** Recipe of PPO for `llmserve`. */
export const SERVE_PPO = {
  ...PPO_DEFAULTS,
  environments: 32,
  rolloutSteps: 64,
  hidden: [64, 64],
  // A change of weights costs a reload: policies that change at random serve nobody, and learn nothing but that.
  keepBonus: [4, 1],
  gamma: 0.97,
  entropyCoef: [0.003, 0],
} as const satisfies PpoRecipe;

/** Recipe of PPO after cloning a teacher: small steps, and none of the actor before the critic knows the policy. */
export const SERVE_FINE_TUNING = {
  ...SERVE_PPO,
  keepBonus: [1, 1],
  learningRate: 3e-4,
  entropyCoef: [0.001, 0],
  targetKl: 0.015,
  criticOnlySteps: 8192,
} as const satisfies PpoRecipe;

/** Recipe of PPO for `fleet`. */
const FLEET_PPO = {
  ...PPO_DEFAULTS,
  environments: 16,
  rolloutSteps: 60,
  hidden: [64, 64],
  // A number of replicas that changes at random pays for cold starts all the time, and learns nothing but that.
  keepBonus: [4, 1],
  gamma: 0.95,
  entropyCoef: [0.003, 0],
} as const satisfies PpoRecipe;

/** Recipe of PPO for `inferencegym`. */
const GYM_PPO = {
  ...PPO_DEFAULTS,
  environments: 16,
  rolloutSteps: 32,
  hidden: [64, 64],
  // A configuration that runs out of memory, or changes the weights, costs five steps: hold one for long enough to see.
  keepBonus: [4, 1],
  gamma: 0.95,
  entropyCoef: [0.01, 0],
} as const satisfies PpoRecipe;

/** Windows of an episode of `fleet` in training: an hour. */
const FLEET_WINDOWS = 120;

export type LearnableEnvironment = 'llmserve' | 'inferencegym' | 'fleet';

/** A task to be learned, and what on. */
interface LearningPlan {
  readonly task: string;
  /** Default: that of the environment. */
  readonly recipe?: PpoRecipe | undefined;
  /** `llmserve`: the options of every reset. */
  readonly scenario?: ServeScenario | undefined;
  /** `llmserve`: draws server, traffic, rates and prompts anew for each trace, and shows the server to the network. */
  readonly randomise?: boolean | undefined;
  /** `inferencegym`: a table of one's own. */
  readonly table?: OwnTable | undefined;
}

/** Settings of a thread's environments, by environment. */
interface SettingsOf {
  readonly llmserve: { readonly task: ServeTask; readonly randomise: boolean };
  readonly fleet: { readonly task: FleetTask };
  readonly inferencegym: {
    readonly task: GymTask;
    /** A table of one's own with the task's calibration; `null`: the table that comes with the package. */
    readonly own: { readonly rows: TableRows; readonly calibration: TaskCalibration } | null;
  };
}
type LearningSettings = {
  [Id in LearnableEnvironment]: { readonly environment: Id } & SettingsOf[Id];
}[LearnableEnvironment];

/** A task on its training split, with the recipe of its environment and the form of its files. */
export function learningTask(environment: LearnableEnvironment, plan: LearningPlan): LearningTask {
  return LEARNING_TASKS[environment](plan);
}

const LEARNING_TASKS: Readonly<Record<LearnableEnvironment, (plan: LearningPlan) => LearningTask>> = {
  llmserve({ task: taskId, recipe = SERVE_PPO, scenario = {}, randomise = false }) {
    const under: Record<string, string> = {
      ...(Object.keys(scenario).length > 0 && { scenario: JSON.stringify(scenario) }),
      ...(randomise && { randomise: 'true' }),
    };
    const task = llmserve.choose({ ...scenario, task_id: taskId });
    const settings: LearningSettings = { environment: 'llmserve', task, randomise };
    return describeTask(SERVE_LEARNER, taskId, recipe, settings, { under });
  },
  fleet({ task: taskId, recipe = FLEET_PPO }) {
    const settings: LearningSettings = {
      environment: 'fleet',
      task: knownTask(FLEET_LEARNER.environment, taskId),
    };
    return describeTask(FLEET_LEARNER, taskId, recipe, settings);
  },
  inferencegym({ task: taskId, recipe = GYM_PPO, table }) {
    const task = knownTask(GYM_LEARNER.environment, taskId);
    const own = table && { rows: table.rows, calibration: inferencegym.calibrate(table.world.times, task) };
    const settings: LearningSettings = { environment: 'inferencegym', task, own: own ?? null };
    return describeTask(GYM_LEARNER, task.id, recipe, settings, { metadata: table && { table: table.hash } });
  },
};

/**
 * @param metadata more of it for all files
 * @param under what the network was trained under: a network is loaded whatever it was, so that its file has it as a note
 */
function describeTask<Action extends object, Task extends { readonly id: string | number }>(
  learner: Learner<Action, Task>,
  taskId: string | number,
  recipe: PpoRecipe,
  settings: LearningSettings,
  { metadata, under }: { metadata?: Record<string, string> | undefined; under?: Record<string, string> } = {},
): LearningTask {
  const own = { ...networkMetadata(learner, taskId), ...metadata };
  return {
    ...{ environment: learner.environment, taskId, recipe, settings },
    module: new URL(import.meta.url),
    traces: SEED_SPLITS.train,
    metadata: { ...own, ...under },
    encodeActor: (weights, training) =>
      encodeActor(weights, { ...own, training: JSON.stringify({ ...training, ...under }) }),
  };
}

/** A task as a learner plays it, on a thread. */
export function createEnvironment({
  environment,
  ...settings
}: LearningSettings): Promise<LearningEnvironment> {
  return LEARNED[environment](settings as never);
}

const LEARNED: {
  readonly [Id in LearnableEnvironment]: (settings: SettingsOf[Id]) => Promise<LearningEnvironment>;
} = {
  llmserve: async ({ task, randomise }) =>
    new EpisodeEnvironment({
      features: randomise ? manyServersFeatures(llmserve) : llmserve.features,
      codec: SERVE_LEARNER.codec(task),
      initialAction: task.defaultAction,
      start: (seed) => new ServeEpisode(randomise ? llmserve.randomise(task, seed) : task, seed),
    }),
  fleet: async ({ task }) =>
    new EpisodeEnvironment({
      features: FLEET_LEARNER.environment.features,
      codec: FLEET_LEARNER.codec(task),
      initialAction: task.defaultAction,
      start: (seed) => new FleetEpisode({ ...task, windows: FLEET_WINDOWS }, seed),
    }),
  async inferencegym({ task, own }) {
    const world =
      own === null
        ? await inferencegym.shippedWorld()
        : new GymWorld(new TraceTable(own.rows), { [task.id]: own.calibration });
    return new EpisodeEnvironment({
      features: inferencegym.features,
      codec: GYM_LEARNER.codec(task),
      initialAction: inferencegym.defaultAction,
      start: (seed) => new GymEpisode(task, seed, world),
    });
  },
};
