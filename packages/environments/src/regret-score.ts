const DEFAULT_SCORE = 0.2;
const CONSTANT_SCORE = 0.5;
const CLAIRVOYANT_SCORE = 0.95;

/** Returns on the same traffic at which the scores are fixed. */
export interface ScoreAnchors {
  /** 0.20 */
  readonly default: number;
  /** 0.50: the best constant configuration, or for `fleet` the best tuned rule; `null` where none is known. */
  readonly constant: number | null;
  /** 0.95 */
  readonly clairvoyant: number;
}

/** Room to adapt of a task below which the constant has no score of its own: its segment would be noise. */
const LEAST_ROOM = 0.05;
/** Least share of the way from default to clairvoyant that either side of the constant must be. */
const LEAST_SEGMENT = 0.02;

/**
 * Score of a return among its anchors: the default scores 0.20, the best constant 0.50, the clairvoyant 0.95, linear
 * between, rising smoothly towards 1 above. Below the default it falls as slowly as 0.20 / (1 + gaps), a gap being the
 * distance from default to clairvoyant: 0.10 one gap below, 0.018 ten gaps below, so that a first attempt still sees a
 * slope. Strictly inside (0, 1) and increasing.
 * The constant is left out where the task leaves no room to adapt, and on traffic where it does no better than the default
 * or no worse than the clairvoyant.
 * @param room room to adapt of the task, 0..1
 */
export function regretScore(total: number, anchors: ScoreAnchors, room: number): number {
  const { default: low, constant: middle, clairvoyant } = anchors;
  const high = Math.max(clairvoyant, low + 1e-6);
  const apart = LEAST_SEGMENT * (high - low);
  const kept = middle !== null && room >= LEAST_ROOM && middle - low >= apart && high - middle >= apart;
  const knots: [number, number][] = kept
    ? [
        [low, DEFAULT_SCORE],
        [middle, CONSTANT_SCORE],
        [high, CLAIRVOYANT_SCORE],
      ]
    : [
        [low, DEFAULT_SCORE],
        [high, CLAIRVOYANT_SCORE],
      ];
  if (total < low) return inside(DEFAULT_SCORE / (1 + (low - total) / (high - low)));
  const slopes = knots.slice(1).map(([x, y], i) => (y - knots[i][1]) / (x - knots[i][0]));
  for (let i = 1; i < knots.length; i++) {
    if (total > knots[i][0]) continue;
    // Rounding must not lift the end of a segment above the beginning of the next.
    return Math.min(knots[i][1], knots[i - 1][1] + slopes[i - 1] * (total - knots[i - 1][0]));
  }
  const rest = 1 - CLAIRVOYANT_SCORE;
  return inside(1 - rest * Math.exp((-slopes[slopes.length - 1] / rest) * (total - high)));
}

/** Far outside, rounding reaches the limits that the score never does. */
function inside(score: number): number {
  return Math.min(1 - Number.EPSILON, Math.max(Number.MIN_VALUE, score));
}
