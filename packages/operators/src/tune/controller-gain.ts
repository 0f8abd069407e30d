import { blockResamples, type IntervalEnds, percentileInterval } from '@servegym/simulator/statistics';
import type { LoadPoint } from './load-point.ts';

/** Gain of settings that follow the traffic over a fixed configuration, at one load. */
export interface ControllerGain {
  /** Times the rate of the traffic. */
  readonly load: number;
  /** Share of the requests that meet every limit, with the settings that are best on the whole. */
  readonly fixed: number;
  /** The same, with the best settings for each block, known beforehand and switched at no cost. */
  readonly clairvoyant: number;
  readonly gain: number;
  readonly interval: IntervalEnds;
  /** Blocks between which the settings could change. */
  readonly blocks: number;
}

/**
 * Compares the best fixed settings with those that are best block by block. Both are chosen on half of the requests and
 * judged on the other, so that chance does not pass for skill.
 *
 * @param points Of each candidate, all at one load.
 */
export function controllerGain(points: readonly LoadPoint[], seed: number): ControllerGain {
  const { requests, load } = points[0];
  const blocks = requests.length;
  const halves = [
    { choose: points.map((point) => point.goodEven), judge: points.map((point) => point.goodOdd) },
    { choose: points.map((point) => point.goodOdd), judge: points.map((point) => point.goodEven) },
  ];
  const fixed = new Float64Array(blocks);
  const clairvoyant = new Float64Array(blocks);
  for (const { choose, judge } of halves) {
    const overall = bestOf(choose.map((good) => good.reduce((sum, each) => sum + each, 0)));
    for (let b = 0; b < blocks; b += 1) {
      const own = bestOf(
        choose.map((good) => good[b]),
        overall,
      );
      fixed[b] += judge[overall][b];
      clairvoyant[b] += judge[own][b];
    }
  }
  const share = (good: Float64Array, weights?: ArrayLike<number>) => {
    let sum = 0;
    let total = 0;
    for (let b = 0; b < blocks; b += 1) {
      sum += good[b] * (weights?.[b] ?? 1);
      total += requests[b] * (weights?.[b] ?? 1);
    }
    return sum / total;
  };
  const gains = blockResamples(blocks, seed).map(
    (weights) => share(clairvoyant, weights) - share(fixed, weights),
  );
  const [best, seen] = [share(fixed), share(clairvoyant)];
  return {
    ...{ load, blocks, fixed: best, clairvoyant: seen, gain: seen - best },
    interval: percentileInterval(gains),
  };
}

/** Index of the largest; of equals the `preferred` one, else the first. */
function bestOf(values: readonly number[], preferred = 0): number {
  let best = preferred;
  for (const [i, value] of values.entries()) if (value > values[best]) best = i;
  return best;
}
