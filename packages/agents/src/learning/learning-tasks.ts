import {
  FleetEpisode,
  GymEpisode,
  GymWorld,
  inferencegym,
  llmserve,
  SEED_SPLITS,
  ServeEpisode,
  type ServeScenario,
  TraceTable,
} from '@servegym/environments';
import type { OwnTable } from '../core/playable.ts';
import {
  ANY_SERVER_LEARNER,
  FLEET_LEARNER,
  GYM_LEARNER,
  knownTask,
  type Learner,
  networkMetadata,
  SERVE_LEARNER,
} from './learners.ts';
import {
  EpisodeEnvironment,
  type LearnedEpisode,
  type LearningEnvironment,
  type LearningTask,
} from './learning-environment.ts';
import { PPO_DEFAULTS, type PpoRecipe } from './ppo.ts';
import { encodeActor } from './trained-actor.ts';

/**
 * What the recipes have in common. Changes at random cost more than they teach: a change of weights costs a reload, of the
 * number of replicas a cold start, and a configuration of `inferencegym` that runs out of memory five steps.
 */
const TASK_PPO = { ...PPO_DEFAULTS, hidden: [64, 64], keepBonus: [4, 1] } as const;

/** Recipe of PPO for `llmserve`. */
export const SERVE_PPO = {
  ...TASK_PPO,
  environments: 32,
  rolloutSteps: 64,
  gamma: 0.97,
  entropyCoef: [0.003, 0],
} as const satisfies PpoRecipe;

const FLEET_PPO = {
  ...TASK_PPO,
  environments: 16,
  rolloutSteps: 60,
  gamma: 0.95,
  entropyCoef: [0.003, 0],
} as const satisfies PpoRecipe;

const GYM_PPO = {
  ...TASK_PPO,
  environments: 16,
  rolloutSteps: 32,
  gamma: 0.95,
  entropyCoef: [0.01, 0],
} as const satisfies PpoRecipe;

/** Windows of an episode of `fleet` in training: an hour. */
const FLEET_WINDOWS = 120;

/** A task to be learned, and what on. */
interface LearningPlan {
  readonly task: string;
  /** Default: that of the environment. */
  readonly recipe?: PpoRecipe | undefined;
  /** `llmserve`: the options of every reset. */
  readonly scenario?: ServeScenario | undefined;
  /** `inferencegym`: a table of one's own. */
  readonly table?: OwnTable | undefined;
}

/** What a plan comes to. */
interface Planned<Settings> {
  /** Settings of a thread's environments; they survive structured cloning. */
  readonly settings: Settings;
  /** More metadata for all files. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  /** What the network was trained under: a network is loaded whatever it was, so that its file has it as a note. */
  readonly under?: Readonly<Record<string, string>>;
}

function learned<Action extends object, Task extends { readonly id: string | number }, Settings>(
  name: string,
  learner: Learner<Action, Task>,
  standardRecipe: PpoRecipe,
  planned: (plan: LearningPlan) => Planned<Settings>,
  create: (settings: Settings) => Promise<LearningEnvironment>,
) {
  return {
    create,
    learningTask(plan: LearningPlan): LearningTask {
      const { settings, metadata, under } = planned(plan);
      const { environment } = learner;
      const { id: taskId } = knownTask(environment, plan.task);
      const own = { ...networkMetadata(learner, taskId), ...metadata };
      return {
        ...{ environment, taskId, recipe: plan.recipe ?? standardRecipe },
        module: new URL(import.meta.url),
        settings: { environment: name, settings },
        traces: SEED_SPLITS.train,
        metadata: { ...own, ...under },
        encodeActor: (weights, training) =>
          encodeActor(weights, { ...own, training: JSON.stringify({ ...training, ...under }) }),
      };
    },
  };
}

function episodesOf<Action extends object, Task extends { readonly id: string | number }>(
  { environment: { features }, codec }: Learner<Action, Task>,
  task: Task,
  initialAction: Action,
  start: (seed: number) => LearnedEpisode<Action>,
) {
  return new EpisodeEnvironment({ features, codec: codec(task), initialAction, start });
}

/** The environments that networks are trained on. */
export const LEARNABLE = {
  llmserve: learned(
    'llmserve',
    SERVE_LEARNER,
    SERVE_PPO,
    ({ task: task_id, scenario = {} }) => ({
      settings: llmserve.choose({ ...scenario, task_id }),
      under: { ...(Object.keys(scenario).length > 0 && { scenario: JSON.stringify(scenario) }) },
    }),
    async (task) =>
      episodesOf(SERVE_LEARNER, task, task.defaultAction, (seed) => new ServeEpisode(task, seed)),
  ),
  'any-server': learned(
    'any-server',
    ANY_SERVER_LEARNER,
    SERVE_PPO,
    () => ({ settings: null }),
    async () => {
      const task = llmserve.tasks.shipped.bursty_workload;
      const start = (seed: number) => new ServeEpisode(llmserve.choose({ servers: 'any', seed }), seed);
      return episodesOf(ANY_SERVER_LEARNER, task, task.defaultAction, start);
    },
  ),
  inferencegym: learned(
    'inferencegym',
    GYM_LEARNER,
    GYM_PPO,
    ({ task: taskId, table }) => {
      const task = knownTask(GYM_LEARNER.environment, taskId);
      // The table that comes with the package needs no rows.
      const own = table && { rows: table.rows, calibration: inferencegym.calibrate(table.world.times, task) };
      return { settings: { task, own }, metadata: table && { table: table.hash } };
    },
    async ({ task, own }) => {
      const world =
        own === undefined
          ? await inferencegym.shippedWorld()
          : new GymWorld(new TraceTable(own.rows), { [task.id]: own.calibration });
      const start = (seed: number) => new GymEpisode(task, seed, world);
      return episodesOf(GYM_LEARNER, task, inferencegym.defaultAction, start);
    },
  ),
  fleet: learned(
    'fleet',
    FLEET_LEARNER,
    FLEET_PPO,
    ({ task }) => ({ settings: knownTask(FLEET_LEARNER.environment, task) }),
    async (task) => {
      const start = (seed: number) => new FleetEpisode({ ...task, windows: FLEET_WINDOWS }, seed);
      return episodesOf(FLEET_LEARNER, task, task.defaultAction, start);
    },
  ),
};

export type LearnableEnvironment = Exclude<keyof typeof LEARNABLE, 'any-server'>;

/** A task as a learner plays it, on a thread. */
export function createEnvironment({
  environment,
  settings,
}: {
  readonly environment: keyof typeof LEARNABLE;
  readonly settings: unknown;
}): Promise<LearningEnvironment> {
  return LEARNABLE[environment].create(settings as never);
}
