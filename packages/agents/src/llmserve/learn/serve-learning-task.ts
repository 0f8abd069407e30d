import {
  chooseTask,
  llmserve,
  SEED_SPLITS,
  ServeEpisode,
  type ServeScenario,
  type ServeTask,
  WINDOW_FEATURES,
} from '@servegym/environments';
import { FeatureEncoder } from '../../learning/feature-encoder.ts';
import {
  EpisodeEnvironment,
  type LearningEnvironment,
  type LearningTask,
} from '../../learning/learning-environment.ts';
import { PPO_DEFAULTS, type PpoRecipe } from '../../learning/ppo.ts';
import { encodeServeActor, serveActorMetadata } from './policy-files.ts';
import { ServeActionCodec } from './serve-encoding.ts';

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

/** A task of `llmserve` on its training split, under the traffic, trace and shift of `scenario`. */
export function serveLearningTask(
  taskId: string,
  recipe: PpoRecipe = SERVE_PPO,
  scenario: ServeScenario = {},
): LearningTask {
  const under: Record<string, string> =
    Object.keys(scenario).length === 0 ? {} : { scenario: JSON.stringify(scenario) };
  return {
    environment: llmserve,
    taskId,
    recipe,
    module: new URL(import.meta.url),
    settings: chooseTask({ ...scenario, task_id: taskId }),
    traces: SEED_SPLITS.train,
    metadata: { ...serveActorMetadata(taskId), ...under },
    encodeActor: (weights, training) =>
      encodeServeActor({ taskId, weights, training: { ...training, ...under } }),
  };
}

/** A task of `llmserve` as a learner plays it. */
export function serveLearningEnvironment(task: ServeTask): LearningEnvironment {
  const encoder = new FeatureEncoder(WINDOW_FEATURES);
  return new EpisodeEnvironment({
    observationSize: encoder.size,
    codec: new ServeActionCodec(task),
    initialAction: task.defaultAction,
    start(seed) {
      encoder.reset();
      return new ServeEpisode(task, seed);
    },
    observe(episode, previousAction, observation) {
      encoder.encode(episode.observation(), previousAction, observation);
    },
  });
}

/** For threads. */
export const createEnvironment = serveLearningEnvironment;
