import type { Feature } from '@servegym/environments';
import type { ActionCodec } from './action-codec.ts';
import { FeatureEncoder } from './feature-encoder.ts';
import type { PpoTraining } from './ppo.ts';
import type { ActorWeights } from './trained-actor.ts';

/** The episode goes on. */
export const RUNNING = 0;
/** The episode ended for good: nothing is earned after it. */
export const TERMINATED = 1;
/** The episode was cut off by a time limit: the value of the last observation stands for what would have come. */
export const TRUNCATED = 2;

/** State of an episode after an action. */
type EpisodeEnd = typeof RUNNING | typeof TERMINATED | typeof TRUNCATED;

/** Answer to an action. */
export interface LearningStep {
  readonly reward: number;
  readonly end: EpisodeEnd;
}

/** An environment as a learner sees it: numbers in, bins out. */
export interface LearningEnvironment {
  /** Numbers in an observation. */
  readonly observationSize: number;
  /** Bins of each head of an action. */
  readonly headSizes: readonly number[];
  /** Bins in force right after a reset. */
  readonly initialBins: readonly number[];
  /** Starts an episode on the trace of `seed` and writes its first observation. */
  reset(seed: number, observation: Float32Array): void;
  /** Plays an action, one bin a head, and writes the observation that it led to. */
  step(action: Int32Array, observation: Float32Array): LearningStep;
}

/** Episodes of a task. */
interface LearnedEpisodes<Action extends object, Episode> {
  /** What a network sees. */
  readonly features: readonly Feature[];
  readonly codec: ActionCodec<Action>;
  /** In force right after a reset. */
  readonly initialAction: Action;
  /** Starts the episode of a trace. */
  start(seed: number): Episode;
}

/**
 * Episodes as a learner plays them. The end of an episode is a time limit: the server would go on, and whoever waits would
 * still have to be served.
 */
export class EpisodeEnvironment<
  Action extends object,
  Episode extends { readonly done: boolean; step(action: Action): number; observation(): object },
> implements LearningEnvironment
{
  readonly observationSize: number;
  readonly headSizes: readonly number[];
  readonly initialBins: readonly number[];
  readonly #episodes: LearnedEpisodes<Action, Episode>;
  readonly #encoder: FeatureEncoder;
  #episode: Episode | undefined;

  constructor(episodes: LearnedEpisodes<Action, Episode>) {
    const { features, codec, initialAction } = episodes;
    this.#encoder = new FeatureEncoder(features);
    this.observationSize = this.#encoder.size;
    this.headSizes = codec.headSizes;
    this.initialBins = codec.encode(initialAction);
    this.#episodes = episodes;
  }

  reset(seed: number, observation: Float32Array): void {
    const { start, initialAction } = this.#episodes;
    this.#encoder.reset();
    this.#episode = start(seed);
    this.#encoder.encode(this.#episode.observation(), initialAction, observation);
  }

  step(bins: Int32Array, observation: Float32Array): LearningStep {
    const episode = this.#episode!;
    const action = this.#episodes.codec.decode(bins);
    const reward = episode.step(action);
    this.#encoder.encode(episode.observation(), action, observation);
    return { reward, end: episode.done ? TRUNCATED : RUNNING };
  }
}

/** Something that networks can be trained on: what to play, how to learn it and how to keep what was learned. */
export interface LearningTask extends Pick<PpoTraining, 'recipe' | 'module' | 'settings' | 'traces'> {
  readonly environment: { readonly id: string; readonly version: string };
  readonly taskId: string | number;
  /** Metadata of files with a network, or with a part of its training. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The file that the network is loaded from. `training` is for people. */
  encodeActor(weights: ActorWeights, training: TrainingNote): Uint8Array;
}

/** Origin of a policy, for people: algorithm, steps, seed. */
export type TrainingNote = Readonly<Record<string, string | number>>;
