import { createFleetPolicy, createServePolicy } from '@servegym/agents/browser';
import { fleet, llmserve, type RegisteredEnvironment } from '@servegym/environments';
import type { Action, GameChoice, GameKnob, GameTask, GameWindow, Observation } from './game-moves.ts';

type GameEnvironment = RegisteredEnvironment<
  Action,
  Observation,
  object,
  { readonly id: string; readonly profile: string }
>;

interface GamePolicy {
  reset(episode: { readonly taskId: string; readonly seed: number }): void;
  act(step: {
    readonly observation: Observation;
    readonly reward: number | null;
    readonly previousAction: Action;
    readonly stepIndex: number;
  }): Action;
}

/** Environments, with the policies that play beside a person, by the name that is shown. */
const PLAYED = {
  llmserve: {
    environment: llmserve,
    rivals: { rule: () => createServePolicy('rule'), PPO: () => createServePolicy('ppo') },
  },
  fleet: {
    environment: fleet,
    rivals: {
      rule: () => createFleetPolicy('rule'),
      'any-server': () => createFleetPolicy('any-server'),
    },
  },
} as unknown as Readonly<
  Record<string, { environment: GameEnvironment; rivals: Readonly<Record<string, () => GamePolicy>> }>
>;

/** Profiles that a game of this choice needs. @throws RangeError with the environments, tasks or seeds there are */
export function gameProfiles({ environment, task, seed }: GameChoice): string[] {
  const of = Object.hasOwn(PLAYED, environment) ? PLAYED[environment]!.environment : undefined;
  if (of === undefined)
    throw new RangeError(
      `environment: expected one of ${Object.keys(PLAYED).join(', ')}, got ${environment}`,
    );
  if (of.tasks.find(task) === undefined)
    throw new RangeError(`task: expected one of ${of.tasks.ids().join(', ')}, got ${task}`);
  if (!Number.isSafeInteger(seed) || seed < 0)
    throw new RangeError(`seed: expected a whole number from 0 to 2^53 - 1, got ${seed}`);
  return [...new Set(of.tasks.all().map(({ profile }) => profile))];
}

/** An episode that a person and policies play, each on a server of their own with the same requests. */
export class Game {
  readonly task: GameTask;
  readonly tasks: readonly Pick<GameTask, 'id' | 'name'>[];
  readonly knobs: readonly GameKnob[];
  readonly players: readonly string[];
  readonly #reset: { readonly task_id: string; readonly seed: number };
  readonly #definition: ReturnType<GameEnvironment['definition']>;
  readonly #servers;
  readonly #rivals: readonly GamePolicy[];
  readonly #windows: GameWindow[] = [];

  /** Of a choice whose profiles are there. */
  constructor({ environment: id, task, seed }: GameChoice) {
    const { environment, rivals } = PLAYED[id]!;
    this.#definition = environment.definition();
    const tasks = this.#definition.tasks as unknown as readonly GameTask[];
    this.tasks = tasks.map(({ id, name }) => ({ id, name }));
    this.task = tasks.find((each) => each.id === task)!;
    const { default_action } = this.task;
    const { shape } = environment.actionSchema as unknown as typeof llmserve.actionSchema;
    this.knobs = this.task.active_actions.map((name) => ({
      ...{ name, description: shape[name as keyof typeof shape].meta()?.description ?? '' },
      values: [...new Set([...environment.bins[name]!, default_action[name]])],
    }));
    this.players = ['you', ...Object.keys(rivals)];
    this.#reset = { task_id: task, seed };
    this.#servers = this.players.map(() => {
      const server = this.#definition.create();
      return { server, last: server.reset(this.#reset) as Answer, inForce: default_action };
    });
    this.#rivals = Object.values(rivals).map((create) => create());
    for (const rival of this.#rivals) rival.reset({ taskId: task, seed });
  }

  get done(): boolean {
    return this.#servers[0]!.last.done;
  }

  /** Plays a window: the person's with `own`, those of the rivals as these choose. */
  play(own: Action): GameWindow {
    const window = this.#servers.map((each, i) => {
      const { observation, reward } = each.last;
      const step = { observation, reward, previousAction: each.inForce, stepIndex: this.#windows.length };
      each.inForce = i === 0 ? own : this.#rivals[i - 1]!.act(step);
      each.last = each.server.step(each.inForce) as Answer;
      return { action: each.inForce, reward: each.last.reward!, observation: each.last.observation };
    });
    this.#windows.push(window);
    return window;
  }

  /** Scores of the players at the end: the grader replays them. */
  async scores(): Promise<number[]> {
    const grades = this.players.map((_, i) =>
      this.#definition.grade!({
        reset: this.#reset,
        actions: this.#windows.map((window) => window[i]!.action),
      }),
    );
    return (await Promise.all(grades)).map(({ score }) => score);
  }
}

interface Answer {
  readonly observation: Observation;
  readonly reward: number | null;
  readonly done: boolean;
}
