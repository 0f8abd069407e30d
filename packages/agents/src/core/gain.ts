import { type Interval, mean, stratifiedBootstrap } from '@servegym/simulator/statistics';

/** Returns that the return of an episode is held against, on the same traffic. */
export interface ReturnAnchors {
  readonly default: number;
  /** Of a planner that knows the traffic. */
  readonly clairvoyant: number;
  /** True when `clairvoyant` is an estimate. */
  readonly estimated: boolean;
}

/** The return of an episode and its anchors. */
export interface AnchoredReturn {
  readonly return: number;
  readonly anchors: ReturnAnchors;
}

/** Returns of several episodes: 0 is the default configuration, 1 a planner that knows the traffic; nothing is floored. */
export interface GainFigures {
  /** Gain of the mean return, with its 95 % interval by the bootstrap, stratified by task. */
  readonly gain: { readonly mean: number; readonly ci95: Interval };
  /** Mean gain of the tenth of the episodes with the least gain. */
  readonly worst10: number;
  /** Share of the episodes that return less than the default configuration. */
  readonly belowDefault: number;
  /** True when a clairvoyant return is an estimate. */
  readonly estimated: boolean;
}

/** Returns that differ by less than this, relative to the default's, are equal: replays may add up in another order. */
const ROUNDING = 1e-9;

/**
 * Gain of each episode of a task over the default, in units of the mean gap between default and clairvoyant over these
 * episodes, so that traffic with a small gap weighs no more than other traffic; `null` when the gap is not above 0.
 */
export function episodeGains(episodes: readonly AnchoredReturn[]): readonly number[] | null {
  const gap = mean(episodes.map(({ anchors }) => anchors.clairvoyant - anchors.default));
  if (!(gap > 0)) return null;
  return episodes.map(({ return: total, anchors }) => (total - anchors.default) / gap);
}

/** Figures over the episodes of some tasks; `null` when a task has no gap between default and clairvoyant. */
export function gainFigures(tasks: readonly (readonly AnchoredReturn[])[]): GainFigures | null {
  const gains: (readonly number[])[] = [];
  for (const episodes of tasks) {
    const ofTask = episodeGains(episodes);
    if (ofTask === null) return null;
    gains.push(ofTask);
  }
  const all = gains.flat().sort((a, b) => a - b);
  const episodes = tasks.flat();
  return {
    gain: { mean: mean(all), ci95: stratifiedBootstrap(gains, mean) },
    worst10: mean(all.slice(0, Math.ceil(all.length / 10))),
    belowDefault: mean(episodes.map(isBelowDefault)),
    estimated: episodes.some(({ anchors }) => anchors.estimated),
  };
}

function isBelowDefault({ return: total, anchors: { default: standard } }: AnchoredReturn): number {
  return total < standard - ROUNDING * Math.max(1, Math.abs(standard)) ? 1 : 0;
}

/** The anchors in the breakdown of a grade; `null` where the environment gives none. */
export function anchorsOf({ anchors }: Readonly<Record<string, unknown>>): ReturnAnchors | null {
  const { default: standard, clairvoyant, estimated } = Object(anchors) as Partial<ReturnAnchors>;
  if (typeof standard !== 'number' || typeof clairvoyant !== 'number') return null;
  return { default: standard, clairvoyant, estimated: estimated === true };
}
