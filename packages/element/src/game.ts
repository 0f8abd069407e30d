import { createFleetPolicy, createServePolicy } from '@servegym/agents/browser';
import { fleet, llmserve, regretScore } from '@servegym/environments';
import type { Action, GameChoice, GameKnob, GameWindow, Observation } from './game-moves.ts';

interface Step {
  readonly observation: Observation;
  readonly reward: number | null;
  readonly previousAction: Action;
  readonly stepIndex: number;
}

interface GameEpisode {
  readonly done: boolean;
  readonly action: Action;
  observation(): Observation;
  step(action: Action): number;
}

interface GamePolicy {
  reset(episode: { readonly taskId: string; readonly seed: number }): void;
  act(step: Step): Action;
}

interface GameTask {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly windows: number;
  readonly windowSeconds: number;
  readonly profile: string;
  readonly defaultAction: Action;
}

/** Parts of an environment's entry that a game needs. */
interface GameEnvironment {
  readonly tasks: { readonly shipped: Readonly<Record<string, GameTask>> };
  readonly knobs: readonly string[];
  readonly bins: Readonly<Record<string, readonly unknown[]>>;
  readonly actionSchema: {
    readonly shape: Readonly<Record<string, { meta(): { readonly description?: string } | undefined }>>;
  };
  idleKnobs(task: GameTask): readonly string[];
  drawRequests(task: GameTask, seed: number): unknown;
  start(task: GameTask, seed: number, requests: unknown): GameEpisode;
  readonly anchors: {
    of(
      task: GameTask,
      seed: number,
      requests: unknown,
    ): { readonly default: number; readonly clairvoyant: number };
    room(taskId: string): number;
  };
  readonly grading: { tuned(anchors: unknown): number | null };
}

interface Played {
  readonly environment: GameEnvironment;
  /** Policies that play beside a person, by the name that is shown. */
  readonly rivals: Readonly<Record<string, () => GamePolicy>>;
}

const PLAYED = {
  llmserve: {
    environment: llmserve,
    rivals: { rule: () => createServePolicy('rule'), PPO: () => createServePolicy('ppo') },
  },
  fleet: {
    environment: fleet,
    rivals: { rule: () => createFleetPolicy('rule'), HPA: () => createFleetPolicy('hpa') },
  },
} as unknown as Readonly<Record<string, Played>>;

/** The task of a choice. @throws RangeError with those there are */
export function gameTask({ environment, task, seed }: GameChoice): GameTask {
  const found = Object.hasOwn(PLAYED, environment) ? PLAYED[environment]!.environment : undefined;
  if (found === undefined)
    throw new RangeError(
      `environment: expected one of ${Object.keys(PLAYED).join(', ')}, got ${environment}`,
    );
  const { shipped } = found.tasks;
  if (!Object.hasOwn(shipped, task))
    throw new RangeError(`task: expected one of ${Object.keys(shipped).join(', ')}, got ${task}`);
  if (!Number.isSafeInteger(seed) || seed < 0)
    throw new RangeError(`seed: expected a whole number from 0 to 2^53 - 1, got ${seed}`);
  return shipped[task]!;
}

/** An episode that a person and policies play, each on a server of their own with the same requests. */
export class Game {
  readonly task: GameTask;
  readonly tasks: readonly Pick<GameTask, 'id' | 'name'>[];
  readonly knobs: readonly GameKnob[];
  readonly players: readonly string[];
  readonly #seed: number;
  readonly #environment: GameEnvironment;
  readonly #requests: unknown;
  readonly #episodes: readonly GameEpisode[];
  readonly #rivals: readonly GamePolicy[];
  readonly #rewards: (number | null)[];
  readonly #returns: number[];
  #window = 0;

  /** @throws RangeError when there is no such environment, task or seed */
  constructor(choice: GameChoice) {
    this.task = gameTask(choice);
    const { environment, rivals } = PLAYED[choice.environment]!;
    const { task } = this;
    this.#seed = choice.seed;
    this.#environment = environment;
    this.tasks = Object.values(environment.tasks.shipped).map(({ id, name }) => ({ id, name }));
    const idle = environment.idleKnobs(task);
    this.knobs = environment.knobs
      .filter((name) => !idle.includes(name))
      .map((name) => ({
        ...{ name, description: environment.actionSchema.shape[name]!.meta()?.description ?? '' },
        values: [...new Set([...environment.bins[name]!, task.defaultAction[name]])],
      }));
    this.players = ['you', ...Object.keys(rivals)];
    this.#requests = environment.drawRequests(task, choice.seed);
    this.#episodes = this.players.map(() => environment.start(task, choice.seed, this.#requests));
    this.#rivals = Object.values(rivals).map((create) => create());
    for (const rival of this.#rivals) rival.reset({ taskId: task.id, seed: choice.seed });
    this.#rewards = this.players.map(() => null);
    this.#returns = this.players.map(() => 0);
  }

  get done(): boolean {
    return this.#episodes[0]!.done;
  }

  /** Plays a window: the person's with `own`, those of the rivals as these choose. */
  play(own: Action): GameWindow {
    const stepIndex = this.#window++;
    return this.#episodes.map((episode, i) => {
      const step = { reward: this.#rewards[i]!, previousAction: episode.action, stepIndex };
      const action =
        i === 0 ? own : this.#rivals[i - 1]!.act({ ...step, observation: episode.observation() });
      const reward = episode.step(action);
      this.#rewards[i] = reward;
      this.#returns[i]! += reward;
      return { action, reward, observation: episode.observation() };
    });
  }

  /** Scores of the players at the end, as the grader gives them. */
  scores(): number[] {
    const { anchors, grading } = this.#environment;
    const of = anchors.of(this.task, this.#seed, this.#requests);
    const constant = grading.tuned(of);
    const room = anchors.room(this.task.id);
    return this.#returns.map((total) => regretScore(total, { ...of, constant }, room));
  }
}
