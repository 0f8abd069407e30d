import { turned } from '../policy.ts';
import {
  type CheckEffort,
  type CheckedEnvironment,
  type CheckedTask,
  type CheckResult,
  judge,
  keptFigure,
  type PlayedTask,
  valuesOf,
  wanderingActions,
} from './task-check.ts';

/** Means over few seeds may be this much out of order by chance. */
const ORDER_TOLERANCE = 0.02;

/** No request is lost or made up, whatever is done. */
export function conservation<Action extends object>(
  task: PlayedTask<Action>,
  { seeds }: CheckEffort,
): CheckResult {
  let windows = 0;
  let mismatches = 0;
  for (const seed of seeds) {
    for (const actionOf of [() => task.defaultAction, wanderingActions(task, seed)]) {
      const episode = task.start(seed);
      while (!episode.done) {
        episode.step(actionOf());
        windows++;
        if (episode.unaccounted() !== 0) mismatches++;
      }
    }
  }
  const figures = { windows, mismatches };
  return judge(task.environment, { id: 'conservation', holds: mismatches === 0, figures });
}

/** An episode depends on its seed and actions alone, also when it is left for others and brought back. */
export function repeatability<Action extends object>(
  task: PlayedTask<Action>,
  { seeds: [seed = 0] }: CheckEffort,
): CheckResult {
  const first = trajectory(task, seed, wanderingActions(task, seed));
  const repeated = trajectory(task, seed, wanderingActions(task, seed)) === first;
  const restored = trajectory(task, seed, wanderingActions(task, seed), 'forking') === first;
  const another = trajectory(task, seed + 1, wanderingActions(task, seed)) !== first;
  return judge(task.environment, {
    id: 'repeatability',
    holds: repeated && restored && another,
    figures: { repeated: `${repeated}`, restored: `${restored}`, another_seed_differs: `${another}` },
  });
}

/** Rewards and observations of an episode as text. */
export function trajectory<Action extends object>(
  task: PlayedTask<Action>,
  seed: number,
  actionOf: () => Action,
  through?: 'forking',
): string {
  let episode = task.start(seed);
  const lines: string[] = [];
  while (!episode.done) {
    if (through && episode.window % 5 === 4) {
      const back = episode.fork();
      back().step(task.defaultAction);
      episode = back();
    }
    lines.push(JSON.stringify([episode.step(actionOf()), episode.observation()]));
  }
  return lines.join();
}

/** A figure at some values, by names. */
interface OrderedMeans<Value> {
  readonly id: string;
  readonly over: readonly Value[];
  readonly name: (value: Value) => string;
  readonly figure: (value: Value) => number;
}

/** Checks that a figure does not fall from one of some values to the next. */
export function orderedMeans<Value>(
  environment: CheckedEnvironment,
  { id, over, name, figure }: OrderedMeans<Value>,
): CheckResult {
  const figures = over.map((value) => [name(value), figure(value)] as const);
  const holds = figures.every(([, mean], i) => i === 0 || mean >= figures[i - 1]![1] * (1 - ORDER_TOLERANCE));
  return judge(environment, { id, holds, figures: Object.fromEntries(figures) });
}

/** A mean that moves by less than this share of its larger value has not answered. */
const ANSWERS = 0.1;
/** A knob acts when it moves any figure by this share. */
const ACTS = 0.01;
/** Means that differ by less are the same but for rounding. */
const LEAST_MOVE = 1e-9;
/** Load under which a starved server must be seen to fail. */
const OVERLOAD = 4;

/** Movement of the figures when a knob goes from one end of its range to the other. */
interface KnobSwing<Figure extends string> {
  readonly knob: string;
  /** Distance of the smaller mean of each figure at the ends below the larger, as a share of it: 0 to 1. */
  readonly of: Readonly<Record<Figure, number>>;
}

/** Figures that every environment measures. `violationRate`: share of the requests, or of the time, outside the objectives. */
type CommonFigure = 'queueDepth' | 'ttftMs' | 'kvOccupancy' | 'violationRate' | 'outOfMemory';

/** Actions and figures of an environment for the checks of its reaction. */
interface ReactionPlan<Action, Figure extends string> {
  /** Configuration that the knobs are turned from: a server that is overloaded whatever is done shows nothing. */
  readonly from: Action;
  /** One sequence at a time. */
  readonly starved: Action;
  /** Figures that a knob may move; no figure is negative. */
  readonly figures: readonly Figure[];
  /** Knobs that the task masks, for the report. */
  readonly masked?: readonly string[];
  /** Outcome when a knob moves nothing. */
  readonly inert: 'fail' | 'note';
  /** Next step where no knob moves a figure. */
  readonly remedy: string;
}

/** Checks that queue, latency and memory answer to the knobs. */
export function checkReaction<Action extends object, Figure extends string>(
  task: CheckedTask<Action, Figure | CommonFigure>,
  { seeds }: CheckEffort,
  { from, starved, figures, masked, inert, remedy }: ReactionPlan<Action, Figure | CommonFigure>,
): CheckResult[] {
  const { environment } = task;
  const [seed = 0] = seeds;
  const swings = task.knobs.map((each) => {
    const values = valuesOf(each);
    const at = (value: Action[keyof Action]) => task.play(seed, () => turned(from, each.knob, value));
    return knobSwing(each.knob, figures, [at(values[0]), at(values.at(-1)!)]);
  });
  const still = inertKnobs(swings);
  const violated = keptFigure(task.scaled(OVERLOAD), seeds, starved, 'violationRate');
  const outOfMemory = keptFigure(task, seeds, task.defaultAction, 'outOfMemory');
  const reacts = (id: string, figure: CommonFigure) =>
    figureReacts(swings, figure, { environment, id, remedy });
  return [
    reacts('queue_reacts', 'queueDepth'),
    reacts('ttft_reacts', 'ttftMs'),
    reacts('kv_reacts', 'kvOccupancy'),
    judge(environment, {
      id: 'knobs_act',
      holds: still.length === 0,
      otherwise: inert,
      figures: { inert: still.join(', ') || 'none', ...(masked && { masked: masked.join(', ') }) },
    }),
    judge(environment, {
      id: 'starvation_shows',
      holds: violated > 0.5,
      values: { overload: OVERLOAD },
      figures: { violation_rate: violated },
    }),
    judge(environment, {
      id: 'sane_default',
      holds: outOfMemory === 0,
      figures: { out_of_memory: outOfMemory },
    }),
  ];
}

/** The swing between episodes at the two ends of a knob. */
export function knobSwing<Figure extends string>(
  knob: string,
  figures: readonly Figure[],
  [one, other]: readonly [Readonly<Record<Figure, number>>, Readonly<Record<Figure, number>>],
): KnobSwing<Figure> {
  const swing = (figure: Figure) => {
    const low = Math.min(one[figure], other[figure]);
    const high = Math.max(one[figure], other[figure]);
    return high - low < LEAST_MOVE ? 0 : (high - low) / Math.max(Math.abs(low), Math.abs(high));
  };
  const of = Object.fromEntries(figures.map((figure) => [figure, swing(figure)]));
  return { knob, of: of as KnobSwing<Figure>['of'] };
}

/** Checks that some knob moves a figure. `remedy` says why none may, and what to do. */
export function figureReacts<Figure extends string>(
  swings: readonly KnobSwing<Figure>[],
  figure: Figure,
  told: { readonly environment: CheckedEnvironment; readonly id: string; readonly remedy: string },
): CheckResult {
  const { environment, id, remedy } = told;
  const largest = swings.reduce((best, swing) => (swing.of[figure] > best.of[figure] ? swing : best));
  const holds = largest.of[figure] >= ANSWERS;
  const figures = { swing: largest.of[figure], by: holds ? largest.knob : 'none' };
  return judge(environment, { id, holds, figures, values: { percent: 100 * ANSWERS, remedy } });
}

/** The knobs that move no figure. */
export function inertKnobs(swings: readonly KnobSwing<string>[]): string[] {
  return swings
    .filter(({ of }) => Object.values(of).every((swing) => (swing as number) < ACTS))
    .map(({ knob }) => knob);
}
