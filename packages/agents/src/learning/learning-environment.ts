import { type Feature, SEED_SPLITS } from '@servegym/environments';
import { portableMath, RandomStream } from '@servegym/simulator';
import type { WindowedEpisode } from '../core/policy.ts';
import type { PpoTraining } from './ppo.ts';
import type { ActorWeights } from './trained-actor.ts';

/** Values of each knob that a learner chooses from. */
export type ActionBins<Action> = { readonly [Knob in keyof Action]: readonly Action[Knob][] };

/** Between the bins of an action and the action: a head for each knob that is free, in the order of the action. */
export class ActionCodec<Action extends object> {
  readonly headSizes: readonly number[];
  /** The values of each head's bins, by its knob. */
  readonly bins: Readonly<Partial<ActionBins<Action>>>;
  readonly #standard: Action;
  readonly #knobs: readonly (keyof Action & string)[];
  readonly #byRatio: ReadonlySet<keyof Action>;

  /**
   * @param standard values of the knobs that are not free
   * @param byRatio knobs whose nearest bin is found by ratio; of texts it is found by their place among the bins
   */
  constructor(
    bins: ActionBins<Action>,
    knobs: readonly (keyof Action & string)[],
    standard: Action,
    byRatio: readonly (keyof Action)[],
  ) {
    this.#standard = standard;
    this.#knobs = knobs;
    this.#byRatio = new Set(byRatio);
    this.bins = Object.fromEntries(knobs.map((knob) => [knob, bins[knob]])) as Partial<ActionBins<Action>>;
    this.headSizes = knobs.map((knob) => bins[knob].length);
  }

  /** The action of a row of bins, one a head. */
  decode(bins: ArrayLike<number>): Action {
    const action = { ...this.#standard };
    for (const [head, knob] of this.#knobs.entries()) action[knob] = this.bins[knob]![bins[head]];
    return action;
  }

  /** The bins nearest to an action. */
  encode(action: Action): number[] {
    return this.#knobs.map((knob) => {
      const place = this.#placeOf(knob, action[knob]);
      const distances = this.bins[knob]!.map((value) => Math.abs(this.#placeOf(knob, value) - place));
      return distances.indexOf(Math.min(...distances));
    });
  }

  #placeOf(knob: keyof Action, value: Action[keyof Action]): number {
    if (typeof value === 'string') return this.bins[knob]!.indexOf(value);
    return this.#byRatio.has(knob) ? portableMath.log(Number(value)) : Number(value);
  }
}

/** The episode goes on. */
export const RUNNING = 0;
/** The episode ended for good: nothing is earned after it. */
export const TERMINATED = 1;
/** The episode was cut off by a time limit: the value of the last observation stands for what would have come. */
export const TRUNCATED = 2;

/** Answer to an action. */
export interface LearningStep {
  readonly reward: number;
  readonly end: typeof RUNNING | typeof TERMINATED | typeof TRUNCATED;
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
interface LearnedEpisodes<Action extends object> {
  /** What a network sees. */
  readonly features: readonly Feature[];
  readonly codec: ActionCodec<Action>;
  /** In force right after a reset. */
  readonly initialAction: Action;
  start(seed: number): LearnedEpisode<Action>;
}

export type LearnedEpisode<Action> = Pick<WindowedEpisode<Action, object>, 'done' | 'step' | 'observation'>;

/**
 * Episodes as a learner plays them. The end of an episode is a time limit: the server would go on, and whoever waits would
 * still have to be served.
 */
export class EpisodeEnvironment<Action extends object> implements LearningEnvironment {
  readonly observationSize: number;
  readonly headSizes: readonly number[];
  readonly initialBins: readonly number[];
  readonly #episodes: LearnedEpisodes<Action>;
  readonly #encoder: FeatureEncoder;
  #episode: LearnedEpisode<Action> | undefined;

  constructor(episodes: LearnedEpisodes<Action>) {
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

/** Schedule of the traces that environments play during training. */
export interface TraceSchedule {
  readonly seed: number;
  /** Neighbouring environments that play the same traces in the same order. */
  readonly groupSize: number;
  /** Seeds of the traces, both ends included. */
  readonly traces: { readonly first: number; readonly last: number };
}

/** The trace that an environment plays in an episode; both are counted from 0. */
export function traceSeed({ seed, groupSize, traces }: TraceSchedule, environment: number, episode: number) {
  const group = Math.floor(environment / groupSize);
  return new RandomStream(seed, `traces of group ${group}`, episode).integer(traces.first, traces.last);
}

/** The requests of a task by seed. */
export function drawTraffic<Task, Requests>(
  { drawRequests }: { drawRequests(task: Task, seed: number): Requests },
  task: Task,
  seeds: readonly number[],
): { readonly seed: number; readonly requests: Requests }[] {
  return seeds.map((seed) => ({ seed, requests: drawRequests(task, seed) }));
}

/** Traces of the training split that a search with this seed plays, from the `from`-th on. */
export function trainingTraces(seed: number, count: number, from = 0): number[] {
  const schedule = { seed, groupSize: 1, traces: SEED_SPLITS.train };
  return Array.from({ length: count }, (_, i) => traceSeed(schedule, 0, from + i));
}

type Figures = Readonly<Record<string, unknown>>;

/** Encodes steps as the numbers of a list of features. Remembers the episode: `reset` it for each. */
export class FeatureEncoder {
  readonly size: number;
  readonly #features: readonly CompiledFeature[];

  constructor(features: readonly Feature[]) {
    this.size = features.length;
    this.#features = features.map((feature) => new CompiledFeature(feature));
  }

  reset(): void {
    for (const feature of this.#features) feature.reset();
  }

  /** Writes the numbers of a step, given the action in force. Call it once for each step, in order. */
  encode(observation: object, inForce: object, into: Float32Array): void {
    for (let i = 0; i < this.#features.length; i++) {
      into[i] = this.#features[i].next(observation as Figures, inForce as Figures);
    }
  }
}

/** Reads the figure at a path of the observation, or of the action in force. */
function figureAt(path: string): (observation: Figures, inForce: Figures) => unknown {
  const isInAction = path.startsWith('action.');
  const keys = path.split('.').slice(isInAction ? 1 : 0);
  return (observation, inForce) => {
    let value: unknown = isInAction ? inForce : observation;
    for (const key of keys) value = (value as Figures)[key];
    return value;
  };
}

class CompiledFeature {
  readonly #feature: Feature;
  readonly #figure: ReturnType<typeof figureAt>;
  readonly #over: ReturnType<typeof figureAt> | undefined;
  #average = Number.NaN;
  #last = 0;
  #lastFigure: unknown;
  #kept = 0;

  constructor(feature: Feature) {
    this.#feature = feature;
    this.#figure = figureAt(feature.of);
    this.#over = feature.over === undefined ? undefined : figureAt(feature.over);
  }

  reset(): void {
    this.#average = Number.NaN;
    this.#last = 0;
    this.#lastFigure = undefined;
    this.#kept = 0;
  }

  next(observation: Figures, inForce: Figures): number {
    const {
      equals,
      plus = 0,
      over_plus = 0,
      divisor = 1,
      transform,
      memory,
      weight = 1,
      missing,
    } = this.#feature;
    const figure = this.#figure(observation, inForce);
    if (memory === 'kept') return this.#windowsKept(figure);
    let value = equals === undefined ? Number(figure) + plus : Number(figure === equals);
    if (this.#over !== undefined) value /= Number(this.#over(observation, inForce)) + over_plus;
    value /= divisor;
    if (transform !== undefined) value = portableMath[transform](value);
    if (memory === undefined) return value;
    if (memory === 'change') {
      const change = value - this.#last;
      this.#last = value;
      return change;
    }
    const measured = figure !== missing;
    if (measured) {
      this.#average = Number.isNaN(this.#average) ? value : this.#average + weight * (value - this.#average);
    }
    const average = this.#average || 0;
    if (memory === 'average') return average;
    if (memory === 'filled') return measured ? value : average;
    return measured ? value - average : 0;
  }

  #windowsKept(figure: unknown): number {
    this.#kept = this.#lastFigure === figure ? this.#kept + 1 : 0;
    this.#lastFigure = figure;
    return portableMath.log1p(this.#kept);
  }
}
