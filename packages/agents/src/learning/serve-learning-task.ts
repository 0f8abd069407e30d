import {
  llmserve,
  SEED_SPLITS,
  ServeEpisode,
  type ServeScenario,
  type ServeTask,
} from '@servegym/environments';
import { FeatureEncoder } from './feature-encoder.ts';
import {
  EpisodeEnvironment,
  type LearningEnvironment,
  type LearningTask,
} from './learning-environment.ts';
import { PPO_DEFAULTS, type PpoRecipe } from './ppo.ts';
import { encodeServeActor, serveActorMetadata } from './policy-files.ts';
import { MANY_SERVERS_FEATURES, ServeActionCodec } from './serve-encoding.ts';

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

/**
 * A task of `llmserve` on its training split, under the traffic, trace and shift of `scenario`.
 * @param randomise draws server, traffic, rates and prompts anew for each trace, and shows the server to the network
 */
export function serveLearningTask(
  taskId: string,
  recipe: PpoRecipe = SERVE_PPO,
  scenario: ServeScenario = {},
  randomise = false,
): LearningTask {
  const under: Record<string, string> = {
    ...(Object.keys(scenario).length > 0 && { scenario: JSON.stringify(scenario) }),
    ...(randomise && { randomise: 'true' }),
  };
  return {
    environment: llmserve,
    taskId,
    recipe,
    module: new URL(import.meta.url),
    settings: {
      task: llmserve.choose({ ...scenario, task_id: taskId }),
      randomise,
    } satisfies ServeLearningSettings,
    traces: SEED_SPLITS.train,
    metadata: { ...serveActorMetadata(taskId), ...under },
    encodeActor: (weights, training) =>
      encodeServeActor({ taskId, weights, training: { ...training, ...under } }),
  };
}

/** Settings of a thread's environments. */
export interface ServeLearningSettings {
  readonly task: ServeTask;
  readonly randomise: boolean;
}

/** A task of `llmserve` as a learner plays it. */
export function serveLearningEnvironment({ task, randomise }: ServeLearningSettings): LearningEnvironment {
  const encoder = new FeatureEncoder(randomise ? MANY_SERVERS_FEATURES : llmserve.features);
  return new EpisodeEnvironment({
    observationSize: encoder.size,
    codec: new ServeActionCodec(task),
    initialAction: task.defaultAction,
    start(seed) {
      encoder.reset();
      return new ServeEpisode(randomise ? llmserve.randomise(task, seed) : task, seed);
    },
    observe(episode, previousAction, observation) {
      encoder.encode(episode.observation(), previousAction, observation);
    },
  });
}

/** For threads. */
export const createEnvironment = serveLearningEnvironment;
