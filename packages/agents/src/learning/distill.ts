import { llmserve } from '@servegym/environments';
import { RandomStream } from '@servegym/simulator';
import { ActorCritic, shuffle } from './actor-critic.ts';
import { type DemonstratedEpisode, joinDemonstrations } from './demonstrate.ts';
import { type Kernels, simdKernels } from './kernels.ts';
import { knownTask, SERVE_LEARNER } from './learners.ts';
import { trainingTraces } from './learning-environment.ts';
import { SERVE_PPO } from './learning-tasks.ts';
import { normalizeRow, RunningNormalizer } from './running-normalizer.ts';
import type { ActorWeights } from './trained-actor.ts';

/** Actions of a teacher, row by row. */
export interface Demonstrations {
  /** As the environment showed them, [rows x observationSize]. */
  readonly observations: Float32Array;
  /** Bins in force when the teacher chose, and those that it chose, [rows x heads]. */
  readonly binsInForce: Int32Array;
  readonly actions: Int32Array;
}

export interface CloningOptions {
  /** Bins of each head. */
  readonly headSizes: readonly number[];
  /** Units of the hidden layers. */
  readonly hidden: readonly number[];
  /** Seed of the weights and of the minibatches. */
  readonly seed: number;
  /** To learn from; rounded up to whole passes over the demonstrations, so that few of them are gone over more often. */
  readonly minibatches: number;
  readonly minibatchSize: number;
  /** Falls linearly to 0. */
  readonly learningRate: number;
  /** Share of its initial size that each weight loses in a step, times the learning rate. */
  readonly weightDecay: number;
  readonly keepBonus: number;
}

export const CLONING_DEFAULTS = {
  minibatches: 3000,
  minibatchSize: 256,
  learningRate: 1e-3,
  weightDecay: 1e-2,
  keepBonus: 1,
} as const;

const MAX_GRAD_NORM = 1;

/** Result of cloning. */
export interface Clone {
  readonly weights: ActorWeights;
  /** Mean negative log-likelihood of the teacher's actions in the last pass, nats. */
  readonly loss: number;
}

/** Trains an actor to do what a teacher did, by the likelihood of its actions. */
export function cloneBehaviour(
  { observations, binsInForce, actions }: Demonstrations,
  options: CloningOptions,
  kernels: Kernels,
): Clone {
  const { headSizes, hidden, seed, minibatches, minibatchSize, learningRate, weightDecay, keepBonus } =
    options;
  const heads = headSizes.length;
  const rows = actions.length / heads;
  if (rows === 0) throw new RangeError('Expected at least one demonstration');
  const observationSize = observations.length / rows;
  const network = new ActorCritic(kernels, { observationSize, headSizes, hidden }, minibatchSize);
  network.initialize(new RandomStream(seed, 'weights'));
  network.keepBonus = keepBonus;
  const moments = new RunningNormalizer(observationSize);
  for (let row = 0; row < rows; row++) moments.observe(observations, row);
  const scale = moments.scale();

  const batch = kernels.allocate(minibatchSize * observationSize);
  const batchInForce = new Int32Array(minibatchSize * heads);
  const batchActions = new Int32Array(minibatchSize * heads);
  const random = new RandomStream(seed, 'minibatches');
  const order = Int32Array.from({ length: rows }, (_, row) => row);
  const actorParameters = network.adam.parameters.subarray(0, network.actorParameterCount);
  const epochs = Math.ceil(minibatches / Math.ceil(rows / minibatchSize));
  let loss = 0;
  for (let epoch = 0; epoch < epochs; epoch++) {
    const rate = learningRate * (1 - epoch / epochs);
    shuffle(order, random);
    loss = 0;
    for (let start = 0; start < rows; start += minibatchSize) {
      const size = Math.min(minibatchSize, rows - start);
      for (let i = 0; i < size; i++) {
        const row = order[start + i];
        normalizeRow(observations, row, scale, batch, i);
        for (let head = 0; head < heads; head++) {
          batchInForce[i * heads + head] = binsInForce[row * heads + head];
          batchActions[i * heads + head] = actions[row * heads + head];
        }
      }
      const logProbabilities = network.logProbabilities(batch, batchInForce, size);
      for (let i = 0; i < size; i++) {
        loss -= network.heads.logProbability(logProbabilities, i, batchActions) / rows;
        const { outputGradients } = network.actor;
        network.heads.gradient(logProbabilities, i, batchActions, -1 / size, 0, outputGradients);
      }
      network.actor.backward(size);
      network.descend(rate, MAX_GRAD_NORM);
      for (let i = 0; i < actorParameters.length; i++) actorParameters[i] *= 1 - rate * weightDecay;
    }
  }
  const weights = {
    shape: network.shape,
    keepBonus,
    moments: moments.moments,
    parameters: Float32Array.from(actorParameters),
  };
  return { weights, loss };
}

/** Rounds of demonstrations: the teacher plays the first, the student of the rounds before it the others. */
export const DISTILLATION_ROUNDS = 3;

/** Episodes to be demonstrated. */
export interface DemonstrationRequest {
  readonly taskId: string;
  readonly traces: readonly number[];
  /** Plays the episodes. Default: the teacher itself. */
  readonly student?: ActorWeights;
}

export interface DistillOptions {
  readonly taskId: string;
  readonly seed: number;
  /** Episodes in all. */
  readonly episodes: number;
  /** Has a teacher demonstrate episodes, in the order of the traces. */
  readonly demonstrate: (request: DemonstrationRequest) => Promise<readonly DemonstratedEpisode[]>;
  /** That the clone learns from in each round; by default those of `CLONING_DEFAULTS`. */
  readonly minibatches?: number;
  /** Episodes of earlier rounds: the run goes on after them as if it had not stopped. */
  readonly shown?: readonly DemonstratedEpisode[];
  /** Ends after the round at hand. */
  readonly signal?: AbortSignal;
  readonly onRound?: (round: DistillationRound) => void;
}

/** Result of a round. */
export interface DistillationRound {
  /** 1 for the first. */
  readonly round: number;
  /** Mean return of what was played: by the teacher in the first round, by the student in the others. */
  readonly meanReturn: number;
  /** Of the clone, on all that has been demonstrated so far: mean negative log-likelihood, nats. */
  readonly loss: number;
  /** All that has been demonstrated so far. */
  readonly shown: readonly DemonstratedEpisode[];
}

/** Trains a network to do what a teacher does, on the training split. */
export async function distill(options: DistillOptions): Promise<ActorWeights> {
  const { taskId, seed, episodes, minibatches = CLONING_DEFAULTS.minibatches, signal, onRound } = options;
  const { headSizes } = SERVE_LEARNER.codec(knownTask(llmserve, taskId));
  const seen: DemonstratedEpisode[] = [...(options.shown ?? [])];
  const learn = () =>
    cloneBehaviour(
      joinDemonstrations(seen),
      { ...CLONING_DEFAULTS, minibatches, headSizes, hidden: SERVE_PPO.hidden, seed },
      simdKernels(),
    );
  let clone: Clone | undefined = seen.length > 0 ? learn() : undefined;
  for (let round = 0; round < DISTILLATION_ROUNDS && !(clone && signal?.aborted); round++) {
    const from = Math.round((round * episodes) / DISTILLATION_ROUNDS);
    const to = Math.round(((round + 1) * episodes) / DISTILLATION_ROUNDS);
    if (seen.length >= to) continue;
    const traces = trainingTraces(seed, to - from, from);
    const student = clone && { student: clone.weights };
    const shown = await options.demonstrate({ taskId, traces, ...student });
    seen.push(...shown);
    clone = learn();
    const total = shown.reduce((sum, episode) => sum + episode.return, 0);
    onRound?.({
      ...{ round: round + 1, meanReturn: total / shown.length, loss: clone.loss },
      shown: [...seen],
    });
    // Learning blocks the thread: let signals be heard between rounds.
    await new Promise((resolve) => setImmediate(resolve));
  }
  return clone!.weights;
}
