import { llmserve } from '@servegym/environments';
import { CLONING_DEFAULTS, type Clone, cloneBehaviour } from './behaviour-cloning.ts';
import { type DemonstratedEpisode, joinDemonstrations } from './demonstrate.ts';
import { SERVE_LEARNER } from './learners.ts';
import { SERVE_PPO } from './learning-tasks.ts';
import { simdKernels } from './simd-kernels.ts';
import { trainingTraces } from './trace-schedule.ts';
import type { ActorWeights } from './trained-actor.ts';
import { knownTask } from './trained-for.ts';

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
