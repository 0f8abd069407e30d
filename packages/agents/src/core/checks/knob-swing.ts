import type { CheckResult } from './check-result.ts';

/** A mean that moves by less than this share of its larger value has not answered. */
const ANSWERS = 0.1;
/** A knob acts when it moves any figure by this share. */
const ACTS = 0.01;

/** Means that differ by less are the same but for rounding. */
const LEAST_MOVE = 1e-9;

/** What a knob moves when it goes from one end of its range to the other. */
export interface KnobSwing<Figure extends string> {
  readonly knob: string;
  /** How far the smaller mean of each figure at the ends lies below the larger, as a share of it: 0 to 1. */
  readonly of: Readonly<Record<Figure, number>>;
}

/** The swing between episodes at the two ends of a knob. No figure is negative. */
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

/** Whether some knob moves the queue, the time to first token and the KV memory, which go by these names. */
export function serverReacts<Figure extends string>(
  swings: readonly KnobSwing<Figure>[],
  names: { readonly queue: Figure; readonly ttft: Figure; readonly kv: Figure },
  remedy: string,
): CheckResult[] {
  return [
    figureReacts(swings, names.queue, {
      id: 'queue_reacts',
      title: 'the queue reacts to the action',
      remedy,
    }),
    figureReacts(swings, names.ttft, {
      id: 'ttft_reacts',
      title: 'the time to first token reacts to the action',
      remedy,
    }),
    figureReacts(swings, names.kv, {
      id: 'kv_reacts',
      title: 'the KV occupancy reacts to the action',
      remedy,
    }),
  ];
}

/** Whether any knob moves a figure. `remedy` says why none may, and what to do. */
export function figureReacts<Figure extends string>(
  swings: readonly KnobSwing<Figure>[],
  figure: Figure,
  { id, title, remedy }: { readonly id: string; readonly title: string; readonly remedy: string },
): CheckResult {
  const largest = swings.reduce((best, swing) => (swing.of[figure] > best.of[figure] ? swing : best));
  const reacts = largest.of[figure] >= ANSWERS;
  return {
    id,
    group: 'reaction',
    title,
    outcome: reacts ? 'pass' : 'fail',
    figures: { swing: largest.of[figure], by: reacts ? largest.knob : 'none' },
    ...(!reacts && { advice: `No knob moves it by ${100 * ANSWERS} %: ${remedy}` }),
  };
}

/** The knobs that move no figure. */
export function inertKnobs(swings: readonly KnobSwing<string>[]): string[] {
  return swings.filter(({ of }) => Object.values(of).every((swing) => swing < ACTS)).map(({ knob }) => knob);
}
