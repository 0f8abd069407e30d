import { ServeEpisode, type ServeTask } from '@servegym/environments';
import {
  type LearningEnvironment,
  type LearningStep,
  RUNNING,
  TRUNCATED,
} from '../../learning/learning-environment.ts';
import { ServeActionCodec } from './serve-action-codec.ts';
import { ServeObservationEncoder } from './serve-observation-encoder.ts';

/**
 * A task of `llmserve` as a learner sees it. The end of an episode is a time limit: the server would go on, and whoever
 * waits would still have to be served.
 */
export class ServeLearningEnvironment implements LearningEnvironment {
  readonly observationSize = ServeObservationEncoder.size;
  readonly headSizes: readonly number[];
  readonly initialBins: readonly number[];
  readonly #task: ServeTask;
  readonly #codec: ServeActionCodec;
  readonly #encoder = new ServeObservationEncoder();
  #episode: ServeEpisode;

  constructor(task: ServeTask) {
    this.#task = task;
    this.#codec = new ServeActionCodec(task);
    this.headSizes = this.#codec.headSizes;
    this.initialBins = this.#codec.encode(task.defaultAction);
    this.#episode = new ServeEpisode(task, 0);
  }

  reset(seed: number, observation: Float32Array): void {
    this.#episode = new ServeEpisode(this.#task, seed);
    this.#encoder.reset();
    this.#observe(observation);
  }

  step(action: Int32Array, observation: Float32Array): LearningStep {
    const reward = this.#episode.step(this.#codec.decode(action));
    this.#observe(observation);
    return { reward, end: this.#episode.done ? TRUNCATED : RUNNING };
  }

  #observe(observation: Float32Array): void {
    const { action } = this.#episode;
    const seen = this.#episode.observation();
    this.#encoder.encode({ observation: seen, previousAction: action }, observation);
  }
}

/** For threads. */
export function createEnvironment(task: ServeTask): LearningEnvironment {
  return new ServeLearningEnvironment(task);
}
