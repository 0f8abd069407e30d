import { mean } from '@servegym/simulator/statistics';
import {
  type CheckedTask,
  type CheckResult,
  episodeReturn,
  judge,
  type KnobValues,
  type PlayedTask,
  randomActions,
  turned,
} from './task-check.ts';

/** Least gain of a step, in reward, that makes looking for a configuration worth while. */
const WORTH_TUNING = 0.01;
/** Room to adapt that a task of each difficulty must have. */
const LEAST_ROOM = { easy: 0, medium: 0.08, hard: 0.12 } as const;

/** Mean returns of a task's default, its best constant, and a planner that knows the traffic to come. */
export interface Returns {
  readonly default: number;
  readonly constant: number;
  readonly clairvoyant: number;
}

/** Checks that the best constant earns more than the default. */
export function tuningPays(returns: Returns, steps: number, constant: object): CheckResult {
  const gain = (returns.constant - returns.default) / steps;
  return judge({
    ...{ id: 'tuning_pays', group: 'game', holds: gain >= WORTH_TUNING },
    title: 'a tuned configuration beats the default',
    figures: {
      default_return: returns.default,
      best_constant_return: returns.constant,
      gain_per_window: gain,
      best_constant: JSON.stringify(constant),
    },
    advice:
      'The task is trivial: whatever is set earns the same. Raise the load until something has to give, and price what is given.',
  });
}

/** Checks that there is something to adapt to. */
export function roomToAdapt(
  returns: Returns,
  difficulty: keyof typeof LEAST_ROOM,
  otherwise: 'fail' | 'note' = 'fail',
  advice = 'One configuration does nearly all there is to do. Let phases want opposite things for long enough to repay a change, or call the task easy.',
): CheckResult {
  const reach = returns.clairvoyant - returns.default;
  const room = reach <= 1e-9 ? 0 : Math.max(0, returns.clairvoyant - returns.constant) / reach;
  const least = LEAST_ROOM[difficulty];
  return judge({
    ...{ id: 'room_to_adapt', group: 'game', holds: room >= least, otherwise, advice },
    title: `a policy that adapts beats the best constant: room of at least ${least} for ${difficulty}`,
    figures: {
      default_return: returns.default,
      best_constant_return: returns.constant,
      clairvoyant_return: returns.clairvoyant,
      room,
    },
  });
}

/** Checks that actions drawn at random earn less than an operator's. */
export function chanceLoses<Action extends object>(
  task: PlayedTask<Action>,
  seeds: readonly number[],
  operator: { readonly title: string; readonly figure: string; readonly return: number },
): CheckResult {
  const random = mean(seeds.map((seed) => episodeReturn(task, seed, randomActions(task, seed))));
  return judge({
    ...{ id: 'chance_loses', group: 'game' },
    title: `random actions earn less than ${operator.title}`,
    holds: random < operator.return - WORTH_TUNING * task.windows,
    figures: { random_return: random, [operator.figure]: operator.return },
    advice: `Chance does as well as ${operator.title}: that is no sane choice, or nothing matters.`,
  });
}

/** Rules of an environment for the decisions that its tasks must offer. */
export interface DominanceRule {
  /** Windows that a value is held for, and that the good policy then goes on for. */
  readonly hold: number;
  readonly tail: number;
  /** Knobs that must be live decisions; all that are free where fewer are. */
  readonly leastLive: number;
  readonly otherwise: { readonly outcome: 'fail' | 'note'; readonly advice: string };
}

/**
 * For states that a good policy visits: which value of each knob, held for some windows with the other knobs as the
 * policy has them, earns most until some more have passed. A knob is dominated when one value, or one third of its range,
 * wins everywhere: nothing is to be decided about it.
 */
export function knobDominance<Action extends object>(
  task: CheckedTask<Action>,
  episodes: readonly { readonly seed: number; readonly actions: readonly Action[] }[],
  states: number,
  { hold, tail, leastLive, otherwise }: DominanceRule,
): CheckResult {
  const tally = new KnobTally(task.knobs);
  const perEpisode = Math.max(1, Math.round(states / episodes.length));
  const last = task.windows - hold - tail;
  for (const { seed, actions } of episodes) {
    let episode = task.start(seed);
    for (let i = 0; i < perEpisode; i++) {
      const at = Math.max(0, Math.round((last * (i + 0.5)) / perEpisode));
      while (episode.window < at) episode.step(actions[episode.window]);
      const back = episode.fork();
      tally.add((knob, value) => {
        const tried = back();
        let earned = 0;
        while (!tried.done && tried.window < at + hold + tail) {
          const planned = actions[tried.window];
          earned += tried.step(tried.window < at + hold ? turned(planned, knob, value) : planned);
        }
        return earned;
      });
      episode = back();
    }
  }
  return tally.result(Math.min(leastLive, task.knobs.length), task.difficulty, otherwise);
}

/** Rewards closer than this are equal. */
const EQUAL = 1e-6;
/** A bin that is best in this share of the states dominates the others. */
const DOMINATES = 0.97;

/** In how many states each value of a knob is best. */
export class KnobTally<Action> {
  states = 0;
  readonly #knobs: readonly KnobValues<Action>[];
  readonly #wins: ReadonlyMap<string, Map<string, number>>;
  /** States in which a knob makes a difference. */
  readonly #acting = new Map<string, number>();

  constructor(knobs: readonly KnobValues<Action>[]) {
    this.#knobs = knobs;
    this.#wins = new Map(knobs.map(({ knob, bins }) => [knob, new Map(bins.map(({ name }) => [name, 0]))]));
  }

  /** Adds a state, in which a value of a knob is worth so much. */
  add(worth: (knob: keyof Action & string, value: Action[keyof Action]) => number): void {
    this.states++;
    for (const { knob, bins } of this.#knobs) {
      const best = bins.map(({ values }) => Math.max(...values.map((value) => worth(knob, value))));
      const most = Math.max(...best);
      if (most - Math.min(...best) < EQUAL) continue;
      this.#acting.set(knob, this.#actingOf(knob) + 1);
      const wins = this.#wins.get(knob)!;
      for (const [b, { name }] of bins.entries()) {
        if (best[b] >= most - EQUAL) wins.set(name, wins.get(name)! + 1);
      }
    }
  }

  /** @param least knobs that must be live: of which no one bin is best nearly everywhere */
  result(
    least: number,
    difficulty: string,
    otherwise: { readonly outcome: 'fail' | 'note'; readonly advice: string },
  ): CheckResult {
    const acting = this.#knobs.filter(({ knob }) => this.#actingOf(knob) > 0);
    const dominated = acting
      .filter(({ knob }) => Math.max(...this.#wins.get(knob)!.values()) >= DOMINATES * this.#actingOf(knob))
      .map(({ knob }) => knob);
    const live = acting.length - dominated.length;
    return judge({
      ...{ id: 'knob_dominance', group: 'game', holds: live >= least },
      ...{ otherwise: otherwise.outcome, advice: otherwise.advice },
      title: `of at least ${least} knobs no one value is always best, as ${difficulty} tasks ask for`,
      figures: {
        states: this.states,
        live_knobs: live,
        dominated: dominated.join(', ') || 'none',
        ...Object.fromEntries(this.#knobs.map(({ knob }) => [knob, this.#shares(knob)])),
      },
    });
  }

  #actingOf(knob: string): number {
    return this.#acting.get(knob) ?? 0;
  }

  #shares(knob: string): string {
    const states = this.#actingOf(knob);
    if (states === 0) return 'does nothing';
    return [...this.#wins.get(knob)!]
      .map(([name, count]) => `${name} ${Math.round((100 * count) / states)} %`)
      .join(', ');
  }
}
