import type { EngineProfile } from '@servegym/simulator';
import { engineUsd } from './candidate.ts';
import type { LoadPoint } from './load-point.ts';
import type { SearchedCandidate } from './search.ts';
import type { SloTerm } from './slo.ts';
import { sustainedRate } from './sustained-load.ts';
import type { Traffic } from './traffic.ts';
import type { FrontPoint } from './tune-result.ts';

/** Candidates that the front is drawn through, and that a controller may choose among. */
const MOST_CHOICES = 24;
/** Candidates of each precision, with and without speculation, that the Pareto front looks at. */
const OF_EACH_KIND = 4;
/** A ratio that nobody would choose for. */
const ALIKE = 1.01;

/** The best, and the best of each kind. */
export function choicesOf(ranked: readonly SearchedCandidate[]): SearchedCandidate[] {
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
  profile: EngineProfile,
  traffic: Traffic,
  choices: readonly SearchedCandidate[],
  atLoads: readonly (readonly LoadPoint[])[],
  slo: readonly SloTerm[],
  referenceLoad: number,
): FrontPoint[] {
  const points = choices.map(({ candidate, points: found }, i) => {
    const at = atLoads[i].find(({ load }) => load === referenceLoad)!;
    const all = [...found, ...atLoads[i]].sort((a, b) => a.load - b.load);
    const sustained = sustainedRate(all, traffic, slo);
    return {
      ...{ candidate, sustained, ttftP99Ms: at.ttftP99Ms, tpotP99Ms: at.tpotP99Ms },
      quality: profile.weights[candidate.weights]!.quality,
      usdPerMillionTokens: usdPerMillionTokens(profile, traffic, sustained),
    };
  });
  // Ratios by which a is better than b; what is within `ALIKE` is no difference.
  const isBetter = (a: (typeof points)[number], b: (typeof points)[number]) => {
    const ratios = [
      a.sustained / Math.max(1e-9, b.sustained),
      b.ttftP99Ms / a.ttftP99Ms,
      b.tpotP99Ms / a.tpotP99Ms,
      a.quality / b.quality,
    ];
    return ratios.every((ratio) => ratio >= 1) && ratios.some((ratio) => ratio > ALIKE);
  };
  return points.map((point) => ({ ...point, onFront: !points.some((other) => isBetter(other, point)) }));
}

/** USD for a million output tokens of one engine that serves `rate` requests/s of the traffic; `null` when it serves none. */
export function usdPerMillionTokens(profile: EngineProfile, { trace }: Traffic, rate: number): number | null {
  if (rate === 0) return null;
  let tokens = 0;
  for (const each of trace.outputTokens) tokens += each;
  return (engineUsd(profile) / (rate * 3600 * (tokens / trace.outputTokens.length))) * 1e6;
}
