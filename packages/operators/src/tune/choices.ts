import type { EngineProfile } from '@servegym/simulator';
import { blockResamples, percentileInterval } from '@servegym/simulator/statistics';
import { type Candidate, engineUsd } from '../search/candidate.ts';
import type { LoadPoint } from '../search/load-point.ts';
import type { SearchedLoad } from '../search/load-question.ts';
import type { SloTerm } from '../search/slo.ts';
import { sustainedRate } from '../search/sustained-load.ts';
import type { Traffic } from '../search/traffic.ts';
import type { FrontPoint, PossibleTune } from './tune-result.ts';

/** Candidates that the front is drawn through, and that a controller may choose among. */
const MOST_CHOICES = 24;
/** Candidates of each precision, with and without speculation, that the Pareto front looks at. */
const OF_EACH_KIND = 4;
/** A ratio that nobody would choose for. */
const ALIKE = 1.01;

/** The best, and the best of each kind. */
export function choicesOf(ranked: readonly SearchedLoad[]): SearchedLoad[] {
  const ofKind = new Map<string, number>();
  return ranked.filter(({ candidate: { weights, speculationDepth, split, priority } }, rank) => {
    const kind = `${weights} ${speculationDepth > 0} ${split} ${priority}`;
    const before = ofKind.get(kind) ?? 0;
    ofKind.set(kind, before + 1);
    return rank < MOST_CHOICES || before < OF_EACH_KIND;
  });
}

/** Sustained load and latencies at the reference load of each choice; those that no other beats are on the front. */
export function frontPoints(
  slo: readonly SloTerm[],
  traffic: Traffic,
  choices: readonly SearchedLoad[],
  atLoads: readonly (readonly LoadPoint[])[],
  referenceLoad: number,
): Pick<PossibleTune, 'front' | 'others'> {
  const points = choices.map(({ profile, candidate, points: found }, i): FrontPoint => {
    const at = atLoads[i].find(({ load }) => load === referenceLoad)!;
    const all = [...found, ...atLoads[i]].sort((a, b) => a.load - b.load);
    const sustainedRps = sustainedRate(all, traffic, slo);
    const figures = pointFigures(profile, traffic, candidate, sustainedRps, at);
    return { settings: candidate, sustainedRps, ...figures };
  });
  // Ratios by which a is better than b; what is within `ALIKE` is no difference.
  const isBetter = (a: FrontPoint, b: FrontPoint) => {
    const latencies = [b.ttftP99Ms / a.ttftP99Ms, b.tpotP99Ms / a.tpotP99Ms];
    const ratios = [a.sustainedRps / Math.max(1e-9, b.sustainedRps), ...latencies, a.quality / b.quality];
    return ratios.every((ratio) => ratio >= 1) && ratios.some((ratio) => ratio > ALIKE);
  };
  const isBeaten = (point: FrontPoint) => points.some((other) => isBetter(other, point));
  return { front: points.filter((point) => !isBeaten(point)), others: points.filter(isBeaten) };
}

/** Latencies of settings at a load, their accuracy, and what their tokens cost where one engine serves `rate` requests/s. */
export function pointFigures(
  profile: EngineProfile,
  { trace }: Traffic,
  { weights }: Candidate,
  rate: number,
  { ttftP99Ms, tpotP99Ms }: LoadPoint,
): Omit<FrontPoint, 'settings' | 'sustainedRps'> {
  let tokens = 0;
  for (const each of trace.outputTokens) tokens += each;
  const perHour = rate * 3600 * (tokens / trace.outputTokens.length);
  return {
    ...{ ttftP99Ms, tpotP99Ms },
    usdPerMillionOutputTokens: rate === 0 ? null : (engineUsd(profile) / perHour) * 1e6,
    quality: profile.weights[weights]!.quality,
  };
}

/** Gain of settings that follow the traffic over a fixed configuration, at one load. */
export type ControllerGain = ReturnType<typeof controllerGain>;

/**
 * Compares the best fixed settings with those that are best block by block. Both are chosen on half of the requests and
 * judged on the other, so that chance does not pass for skill.
 *
 * @param points Of each candidate, all at one load.
 */
export function controllerGain(points: readonly LoadPoint[], seed: number) {
  const { requests, load } = points[0];
  const blocks = requests.length;
  const [even, odd] = [points.map(({ goodEven }) => goodEven), points.map(({ goodOdd }) => goodOdd)];
  const fixed = new Float64Array(blocks);
  const clairvoyant = new Float64Array(blocks);
  for (const [choose, judge] of [[even, odd] as const, [odd, even] as const]) {
    const overall = bestOf(choose.map((good) => good.reduce((sum, each) => sum + each, 0)));
    for (let b = 0; b < blocks; b += 1) {
      const ofBlock = choose.map((good) => good[b]);
      fixed[b] += judge[overall][b];
      clairvoyant[b] += judge[bestOf(ofBlock, overall)][b];
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
    /** Blocks between which the settings could change. */
    blocks,
    ...{ load, fixed: best, clairvoyant: seen, gain: seen - best },
    interval: percentileInterval(gains),
  };
}

/** Index of the largest; of equals the `preferred` one, else the first. */
function bestOf(values: readonly number[], preferred = 0): number {
  let best = preferred;
  for (const [i, value] of values.entries()) if (value > values[best]) best = i;
  return best;
}
