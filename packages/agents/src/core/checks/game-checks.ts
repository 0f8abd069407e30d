import { mean } from '@servegym/simulator/statistics';
import { turned } from '../policy.ts';
import {
  type CheckEffort,
  type CheckedEnvironment,
  type CheckedGrade,
  type CheckedTask,
  type CheckResult,
  episodeReturn,
  judge,
  type KnobValues,
  keptReturn,
  type PlayedTask,
  randomActions,
  textsOf,
} from './task-check.ts';

/** Least gain of a step, in reward, that makes looking for a configuration worth while. */
const WORTH_TUNING = 0.01;
/** Room to adapt that a task of each difficulty must have. */
const LEAST_ROOM = { easy: 0, medium: 0.08, hard: 0.12 } as const;

/** Mean returns of a task's default, its best constant, and a planner that knows the traffic to come. */
interface Returns {
  readonly default: number;
  readonly constant: number;
  readonly clairvoyant: number;
}

/**
 * Checks that there is something to find, and something to adapt to. `plans` are those of a planner that knows the traffic
 * of each seed. The operator that chance must lose to keeps the default, or the best constant.
 */
export function checkGains<Action extends object>(
  task: CheckedTask<Action>,
  { seeds, states }: CheckEffort,
  constant: Action,
  plans: readonly { readonly seed: number; readonly actions: readonly Action[]; readonly return: number }[],
  { operator, ...rule }: DominanceRule & { readonly operator: 'default' | 'constant' },
): { readonly returns: Returns; readonly results: readonly CheckResult[] } {
  const { environment, difficulty, windows } = task;
  const returns = {
    default: keptReturn(task, seeds, task.defaultAction),
    constant: keptReturn(task, seeds, constant),
    clairvoyant: mean(plans.map((plan) => plan.return)),
  };
  const kept = { default_return: returns.default, best_constant_return: returns.constant };
  const gain = (returns.constant - returns.default) / windows;
  const reach = returns.clairvoyant - returns.default;
  const room = reach <= 1e-9 ? 0 : Math.max(0, returns.clairvoyant - returns.constant) / reach;
  const least = LEAST_ROOM[difficulty];
  const tuningPays = judge(environment, {
    id: 'tuning_pays',
    holds: gain >= WORTH_TUNING,
    figures: { ...kept, gain_per_window: gain, best_constant: JSON.stringify(constant) },
  });
  const roomToAdapt = judge(environment, {
    ...{ id: 'room_to_adapt', holds: room >= least, values: { least, difficulty } },
    otherwise: rule.otherwise,
    figures: { ...kept, clairvoyant_return: returns.clairvoyant, room },
  });
  const chance = {
    default: { title: 'the default', figure: 'default_return', return: returns.default },
    constant: { title: 'a tuned configuration', figure: 'best_constant_return', return: returns.constant },
  };
  const dominance = knobDominance(task, plans, states, rule);
  const results = [tuningPays, chanceLoses(task, seeds, chance[operator]), roomToAdapt, dominance];
  return { returns, results };
}

/** Share of the gain over the default of the best learned policy, or of the clairvoyant, that a rule may take: a choice. */
const MOST_OF_RULE = 0.7;

/** Checks that learning pays over a rule that an engineer writes in half an hour. @param ruled mean return of the rule */
export function ruleLoses(
  environment: CheckedEnvironment,
  returns: Returns,
  ruled: number,
  best = { name: 'a planner that knows the traffic', return: returns.clairvoyant },
): CheckResult {
  const share = (ruled - returns.default) / Math.max(best.return - returns.default, 1e-9);
  return judge(environment, {
    ...{ id: 'rule_loses', holds: share <= MOST_OF_RULE, values: { most: MOST_OF_RULE, learned: best.name } },
    otherwise: 'note',
    figures: { rule_return: ruled, default_return: returns.default, best_return: best.return, share },
  });
}

/** Checks that actions drawn at random earn less than an operator's. */
export function chanceLoses<Action extends object>(
  task: PlayedTask<Action>,
  seeds: readonly number[],
  operator: { readonly title: string; readonly figure: string; readonly return: number },
): CheckResult {
  const random = mean(seeds.map((seed) => episodeReturn(task, seed, randomActions(task, seed))));
  return judge(task.environment, {
    id: 'chance_loses',
    holds: random < operator.return - WORTH_TUNING * task.windows,
    values: { operator: operator.title },
    figures: { random_return: random, [operator.figure]: operator.return },
  });
}

/** Rules of an environment for the decisions that its tasks must offer. */
interface DominanceRule {
  /** Windows that a value is held for, and that the good policy then goes on for. */
  readonly hold: number;
  readonly tail: number;
  /** Knobs that must be live decisions; all that are free where fewer are. */
  readonly leastLive: number;
  readonly otherwise?: 'fail' | 'note';
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
  return tally.result(task, Math.min(leastLive, task.knobs.length), otherwise);
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
    { environment, difficulty }: Pick<PlayedTask<object>, 'environment' | 'difficulty'>,
    least: number,
    otherwise?: 'fail' | 'note',
  ): CheckResult {
    const acting = this.#knobs.filter(({ knob }) => this.#actingOf(knob) > 0);
    const dominated = acting
      .filter(({ knob }) => Math.max(...this.#wins.get(knob)!.values()) >= DOMINATES * this.#actingOf(knob))
      .map(({ knob }) => knob);
    const live = acting.length - dominated.length;
    return judge(environment, {
      ...{ id: 'knob_dominance', holds: live >= least, otherwise, values: { least, difficulty } },
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

/** A way to earn without serving. */
export interface Attack {
  readonly id: string;
  /** Statement that it goes by. Default: that of its id, whose advice means that it may pay: an operator may be better off. */
  readonly statement?: string;
  /** May earn as much as what it is held against: where it changes nothing. */
  readonly mayTie?: boolean;
  readonly values?: Readonly<Record<string, unknown>>;
}

/** An attack on a task that is graded. */
export interface Exploit<Action> extends Attack {
  /** The actions that are sent; those not sent are windows not played. `good` is a configuration that serves. */
  readonly actions: (good: Action) => readonly Action[];
}

/** The result of an attack that must not pay. */
export function attackFails(
  environment: CheckedEnvironment,
  { id, statement = id, mayTie = false, values }: Attack,
  against: { readonly name: string; readonly holds: boolean; readonly tie?: string },
  figures: CheckResult['figures'],
): CheckResult {
  const texts = textsOf(environment, statement);
  const than = `${mayTie ? 'no more than' : 'less than'} ${against.name}${(mayTie && against.tie) || ''}`;
  return judge(environment, {
    ...{ id, holds: against.holds, figures },
    otherwise: texts.advice === undefined ? 'fail' : 'note',
    texts: { ...textsOf(environment, 'exploits'), ...texts },
    values: { ...values, than },
  });
}

/** Settings that exploits are made of. */
interface ExploitedSettings<Action> {
  /** All knobs at an end of their range. */
  readonly least: Action;
  readonly most: Action;
  /** The largest batch and the whole pool. */
  readonly greedy: Partial<Action>;
  /** Two precisions, and two divisions of the GPUs. */
  readonly weights: readonly [Partial<Action>, Partial<Action>];
  readonly split: readonly [Partial<Action>, Partial<Action>];
  /** Puts the knobs that the task masks back to their defaults. */
  readonly hold: (action: Action) => Action;
}

/** Returns within this share of the default's are equal: a knob that changes so little changes nothing. A choice. */
const TIE = 0.001;

/** Traffic of the test split that exploits are tried on. */
export const EXPLOIT_SEEDS = [2_000_000, 2_000_001, 2_000_002];

/** The whole episode with some knobs of the default at fixed values, as far as they are free. */
export function always<Action extends object>(
  { windows, defaultAction }: CheckedTask<Action>,
  { hold }: Pick<ExploitedSettings<Action>, 'hold'>,
  knobs: Partial<Action>,
): Action[] {
  return Array<Action>(windows).fill(hold({ ...defaultAction, ...knobs }));
}

/** Exploits of every environment: episodes that are not played, extremes, and changes for their own sake. */
export function commonExploits<Action extends object>(
  task: CheckedTask<Action>,
  settings: ExploitedSettings<Action>,
): Exploit<Action>[] {
  const { windows, defaultAction } = task;
  const { least, most, greedy, weights, split, hold } = settings;
  const kept = (knobs: Partial<Action>) => () => always(task, settings, knobs);
  const flapping =
    ([odd, even]: readonly [Partial<Action>, Partial<Action>]) =>
    () =>
      Array.from({ length: windows }, (_, window) =>
        hold({ ...defaultAction, ...(window % 2 === 0 ? even : odd) }),
      );
  const left = (count: number) => (action: Action) => Array<Action>(count).fill(action);
  return [
    { id: 'no_step', actions: left(0) },
    { id: 'one_step', actions: left(1) },
    { id: 'few_steps', actions: left(5) },
    { id: 'early_stop', actions: left(windows >> 1) },
    { id: 'late_stop', actions: () => left(windows - 1)(defaultAction) },
    { id: 'least_of_all', actions: kept(least) },
    { id: 'most_of_all', actions: kept(most) },
    { id: 'greedy', actions: kept(greedy) },
    { id: 'flapping_weights', actions: flapping(weights) },
    { id: 'flapping_split', actions: flapping(split) },
    { id: 'flapping_all', actions: flapping([least, most]) },
  ];
}

/** Mean grade of the same actions over the traffic that exploits are tried on. */
export async function meanGrade<Action extends object>(
  task: CheckedTask<Action>,
  actions: readonly Action[],
): Promise<CheckedGrade> {
  const grades: CheckedGrade[] = [];
  for (const seed of EXPLOIT_SEEDS) grades.push(await task.grade(seed, actions));
  return { score: mean(grades.map(({ score }) => score)), worth: mean(grades.map(({ worth }) => worth)) };
}

/**
 * Checks that no exploit earns as much as the default, as the server's grader sees it. Exploits that come to the default
 * by the knobs that the task masks are left out.
 */
export async function checkExploits<Action extends object>(
  task: CheckedTask<Action>,
  exploits: readonly Exploit<Action>[],
  good: Action,
): Promise<CheckResult[]> {
  const { windows, defaultAction } = task;
  const isDefault = (action: Action) =>
    Object.entries(defaultAction).every(([knob, value]) => action[knob as keyof Action] === value);
  const standard = await meanGrade(task, Array<Action>(windows).fill(defaultAction));
  const against = { name: 'the default', tie: ' (as much where it changes nothing)' };
  const results: CheckResult[] = [];
  for (const exploit of exploits) {
    const unlike = exploit.actions(defaultAction);
    if (unlike.length === windows && unlike.every(isDefault)) continue;
    const { score, worth } = await meanGrade(task, exploit.actions(good));
    const holds = exploit.mayTie
      ? worth <= standard.worth + TIE * Math.abs(standard.worth)
      : worth < standard.worth;
    const figures = { score, default_score: standard.score, worth, default_worth: standard.worth };
    results.push(attackFails(task.environment, exploit, { ...against, holds }, figures));
  }
  return results;
}
