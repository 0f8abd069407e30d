import {
  type CheckEffort,
  type CheckedTask,
  type CheckResult,
  judge,
  keptFigure,
  turned,
  valuesOf,
} from './task-check.ts';

/** A mean that moves by less than this share of its larger value has not answered. */
const ANSWERS = 0.1;
/** A knob acts when it moves any figure by this share. */
const ACTS = 0.01;
/** Means that differ by less are the same but for rounding. */
const LEAST_MOVE = 1e-9;
/** Load under which a starved server must be seen to fail. */
const OVERLOAD = 4;

/** Movement of the figures when a knob goes from one end of its range to the other. */
export interface KnobSwing<Figure extends string> {
  readonly knob: string;
  /** Distance of the smaller mean of each figure at the ends below the larger, as a share of it: 0 to 1. */
  readonly of: Readonly<Record<Figure, number>>;
}

/** Actions and words of an environment for the checks of its reaction. */
export interface ReactionPlan<Action, Figure extends string> {
  /** Configuration that the knobs are turned from: a server that is overloaded whatever is done shows nothing. */
  readonly from: Action;
  /** One sequence at a time. */
  readonly starved: Action;
  /** Figures that a knob may move; no figure is negative. */
  readonly figures: readonly Figure[];
  readonly names: {
    readonly queue: Figure;
    readonly ttft: Figure;
    readonly kv: Figure;
    /** Share of the requests, or of the time, outside the objectives. */
    readonly violations: Figure;
    readonly outOfMemory: Figure;
  };
  /** Knobs that the task masks, for the report. */
  readonly masked?: readonly string[];
  /** Outcome when a knob moves nothing. */
  readonly inert: 'fail' | 'note';
  /** Next steps where a check fails. */
  readonly advice: Readonly<Record<'react' | 'act' | 'starve' | 'sane', string>>;
}

/** Checks that queue, latency and memory answer to the knobs. */
export function checkReaction<Action extends object, Figure extends string>(
  task: CheckedTask<Action, Figure>,
  { seeds }: CheckEffort,
  { from, starved, figures, names, masked, inert, advice }: ReactionPlan<Action, Figure>,
): CheckResult[] {
  const [seed = 0] = seeds;
  const swings = task.knobs.map((each) => {
    const values = valuesOf(each);
    const at = (value: Action[keyof Action]) => task.play(seed, () => turned(from, each.knob, value));
    return knobSwing(each.knob, figures, [at(values[0]), at(values.at(-1)!)]);
  });
  const still = inertKnobs(swings);
  const violated = keptFigure(task.scaled(OVERLOAD), seeds, starved, names.violations);
  const outOfMemory = keptFigure(task, seeds, task.defaultAction, names.outOfMemory);
  const reacts = (id: string, what: string, figure: Figure) =>
    figureReacts(swings, figure, { id, title: `${what} reacts to the action`, remedy: advice.react });
  return [
    reacts('queue_reacts', 'the queue', names.queue),
    reacts('ttft_reacts', 'the time to first token', names.ttft),
    reacts('kv_reacts', 'the KV occupancy', names.kv),
    judge({
      ...{ id: 'knobs_act', group: 'reaction', holds: still.length === 0, otherwise: inert },
      title: 'every free knob changes something that can be seen',
      figures: { inert: still.join(', ') || 'none', ...(masked && { masked: masked.join(', ') }) },
      advice: advice.act,
    }),
    judge({
      ...{ id: 'starvation_shows', group: 'reaction', holds: violated > 0.5 },
      title: `one sequence at a time under ${OVERLOAD} times the load violates the objectives`,
      figures: { violation_rate: violated },
      advice: advice.starve,
    }),
    judge({
      ...{ id: 'sane_default', group: 'reaction', holds: outOfMemory === 0 },
      title: 'the default configuration does not run out of memory',
      figures: { out_of_memory: outOfMemory },
      advice: advice.sane,
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
  { id, title, remedy }: { readonly id: string; readonly title: string; readonly remedy: string },
): CheckResult {
  const largest = swings.reduce((best, swing) => (swing.of[figure] > best.of[figure] ? swing : best));
  const holds = largest.of[figure] >= ANSWERS;
  return judge({
    ...{ id, group: 'reaction', title, holds },
    figures: { swing: largest.of[figure], by: holds ? largest.knob : 'none' },
    advice: `No knob moves it by ${100 * ANSWERS} %: ${remedy}`,
  });
}

/** The knobs that move no figure. */
export function inertKnobs(swings: readonly KnobSwing<string>[]): string[] {
  return swings
    .filter(({ of }) => Object.values(of).every((swing) => (swing as number) < ACTS))
    .map(({ knob }) => knob);
}
