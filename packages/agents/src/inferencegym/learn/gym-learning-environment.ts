import {
  GYM_DEFAULT_ACTION,
  GYM_TASKS,
  type GymAction,
  GymEpisode,
  type GymTaskId,
  GymWorld,
  shippedWorld,
  type TableRows,
  type TaskCalibration,
  TraceTable,
} from '@servegym/environments';
import {
  type LearningEnvironment,
  type LearningStep,
  RUNNING,
  TRUNCATED,
} from '../../learning/learning-environment.ts';
import { encodeGymObservation, GYM_OBSERVATION_SIZE, GymActionCodec } from './gym-encoding.ts';

/** What a thread plays. */
export interface GymLearningSettings {
  readonly taskId: GymTaskId;
  /** A table of one's own with the task's calibration; `null`: the table that comes with the package. */
  readonly own: { readonly rows: TableRows; readonly calibration: TaskCalibration } | null;
}

/**
 * A task of `inferencegym` as a learner sees it. The end of an episode is a time limit: the server would go on, and
 * whoever waits would still have to be served.
 */
export class GymLearningEnvironment implements LearningEnvironment {
  readonly observationSize = GYM_OBSERVATION_SIZE;
  readonly headSizes: readonly number[];
  readonly initialBins: readonly number[];
  readonly #taskId: GymTaskId;
  readonly #world: GymWorld;
  readonly #codec: GymActionCodec;
  #episode: GymEpisode;

  constructor(taskId: GymTaskId, world: GymWorld) {
    this.#taskId = taskId;
    this.#world = world;
    this.#codec = new GymActionCodec(taskId);
    this.headSizes = this.#codec.headSizes;
    this.initialBins = this.#codec.encode(GYM_DEFAULT_ACTION);
    this.#episode = new GymEpisode(GYM_TASKS[taskId], 0, world);
  }

  reset(seed: number, observation: Float32Array): void {
    this.#episode = new GymEpisode(GYM_TASKS[this.#taskId], seed, this.#world);
    this.#observe(GYM_DEFAULT_ACTION, observation);
  }

  step(bins: Int32Array, observation: Float32Array): LearningStep {
    const action = this.#codec.decode(bins);
    const reward = this.#episode.step(action);
    this.#observe(action, observation);
    return { reward, end: this.#episode.done ? TRUNCATED : RUNNING };
  }

  #observe(inForce: GymAction, observation: Float32Array): void {
    encodeGymObservation(this.#episode.observation(), inForce, observation);
  }
}

// Threads ask for environments one after another and cannot wait: the table is here before they do.
const shipped = await shippedWorld();

/** For threads. */
export function createEnvironment({ taskId, own }: GymLearningSettings): LearningEnvironment {
  const world =
    own === null ? shipped : new GymWorld(new TraceTable(own.rows), { [taskId]: own.calibration });
  return new GymLearningEnvironment(taskId, world);
}
