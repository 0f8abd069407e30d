import { RandomStream } from '@servegym/simulator';
import { type SEED_SPLITS, splitOfSeed } from '../splits.ts';
import type { ServeTrace } from './request-source.ts';

/** A trace of at least this many episodes is divided by time between the splits. */
const EPISODES_TO_DIVIDE = 5;
/** Which part of a long trace each split plays, as shares of its length: nothing is tested on what was learned from. */
const PARTS = {
  train: [0, 0.6],
  validation: [0.6, 0.8],
  test: [0.8, 1],
} as const satisfies Record<keyof typeof SEED_SPLITS, readonly [number, number]>;

/** Where an episode enters a trace, and after how many ms the trace begins anew. */
export interface TraceStretch {
  readonly startMs: number;
  readonly periodMs: number;
}

/**
 * The stretch of a trace that a seed plays. A trace that is no longer than the episode is played from its start, and
 * over again until the episode ends; between the last arrival and the first of the next round lies the mean gap. Of a
 * longer one the seed draws the start; of one as long as five episodes, within the part of the seed's split: the first 60 %
 * for training, the next 20 % for validation, the rest for tests. `episodeMs` is in the trace's own time.
 */
export function traceStretch({ arrivalMs }: ServeTrace, seed: number, episodeMs: number): TraceStretch {
  const last = arrivalMs[arrivalMs.length - 1];
  const gap = arrivalMs.length > 1 ? last / (arrivalMs.length - 1) : 0;
  // A trace of one moment is played once.
  const periodMs = last + gap === 0 ? Number.POSITIVE_INFINITY : last + gap;
  if (periodMs <= episodeMs || periodMs === Number.POSITIVE_INFINITY) return { startMs: 0, periodMs };
  const split = splitOfSeed(seed);
  const [from, to] =
    split !== undefined && periodMs >= EPISODES_TO_DIVIDE * episodeMs ? PARTS[split] : ([0, 1] as const);
  const room = (to - from) * periodMs - episodeMs;
  const draw = new RandomStream(seed, 'stretch').uniform();
  return { startMs: from * periodMs + Math.max(0, room) * draw, periodMs };
}
