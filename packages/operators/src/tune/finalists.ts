import type { EngineProfile } from '@servegym/simulator';
import { blockResamples, type IntervalEnds, percentileInterval } from '@servegym/simulator/statistics';
import { type Candidate, candidateKey, vllmDefaults } from './candidate.ts';
import type { LoadPoint } from './load-point.ts';
import type { CandidateMeasurer, MeasuredCandidate } from './measure-candidates.ts';
import { HELD_OUT_SEED, type SearchedCandidate, type SearchResult, type TuneOptions } from './search.ts';
import { sustainedLoad, sustainedRate } from './sustained-load.ts';
import type { SplitTraffic } from './traffic.ts';
import type { Estimate } from './tune-result.ts';

const FINALISTS = 5;
/** Loads around the sustained one at which the finalists are measured. */
const GRID = [0.65, 0.8, 0.9, 0.95, 1.05, 1.12, 1.25, 1.5];

/** A candidate that the search has put forward, measured closely on the traffic of the search and on the held-out. */
export interface Finalist {
  readonly candidate: Candidate;
  readonly isDefault: boolean;
  readonly searchedLoad: number;
  readonly searched: Estimate;
  readonly heldOut: Estimate;
  readonly overDefaults: Estimate | null;
  readonly prediction: IntervalEnds;
  readonly heldOutPoints: readonly LoadPoint[];
}

/** The best, the best of each precision, without speculation and in pairs, and vLLM's defaults, on both traffics. */
export async function measureFinalists(
  measurer: CandidateMeasurer,
  profile: EngineProfile,
  { search: traffic, heldOut: unseen }: SplitTraffic,
  { ranked }: SearchResult,
  { slo, seed, objective }: TuneOptions,
): Promise<Finalist[]> {
  const defaults = vllmDefaults(profile);
  const chosen = new Map<string, SearchedCandidate>();
  const choose = (found: SearchedCandidate | undefined) => {
    if (found !== undefined) chosen.set(candidateKey(found.candidate), found);
  };
  // Settings that never bind make no difference: one of those that come to the same is enough.
  for (const found of differentOf(ranked).slice(0, FINALISTS)) choose(found);
  for (const precision of new Set(ranked.map(({ candidate }) => candidate.weights))) {
    choose(ranked.find(({ candidate }) => candidate.weights === precision));
  }
  choose(ranked.find(({ candidate }) => candidate.speculationDepth === 0));
  choose(ranked.find(({ candidate }) => candidate.split));
  choose(ranked.find(({ candidate }) => candidate.priority));
  choose(ranked.find(({ candidate }) => candidateKey(candidate) === candidateKey(defaults)));
  const finalists = [...chosen.values()];

  const measureBoth = async (howOf: (i: number, side: 0 | 1) => Omit<MeasuredCandidate, 'candidate'>) => {
    const listed = (side: 0 | 1) => finalists.map(({ candidate }, i) => ({ candidate, ...howOf(i, side) }));
    return [
      await measurer.measure(traffic, listed(0), { seed }),
      await measurer.measure(unseen, listed(1), { seed: seed + HELD_OUT_SEED }),
    ] as const;
  };
  const rough = await measureBoth((i) => ({
    search: { guess: objective === 'latency' ? 1 : finalists[i].load || 1, step: 1.15, tolerance: 1.05 },
  }));
  const grids = await measureBoth((i, side) => {
    const load = sustainedLoad(rough[side][i], slo);
    return { loads: load === 0 ? [] : GRID.map((step) => step * load) };
  });
  const points = rough.map((each, side) =>
    each.map((own, i) => [...own, ...grids[side][i]].sort((a, b) => a.load - b.load)),
  );

  const sides = [traffic, unseen] as const;
  const resamples = [
    blockResamples(traffic.blockStarts.length - 1, seed),
    blockResamples(unseen.blockStarts.length - 1, seed + HELD_OUT_SEED),
  ] as const;
  const valuesOf = (side: 0 | 1, i: number) =>
    resamples[side].map((weights) => sustainedRate(points[side][i], sides[side], slo, weights));
  const resampled = ([0, 1] as const).map((side) => finalists.map((_, i) => valuesOf(side, i)));
  const rateAt = (side: 0 | 1, i: number) => sustainedRate(points[side][i], sides[side], slo);
  const defaultAt = finalists.findIndex(
    ({ candidate }) => candidateKey(candidate) === candidateKey(defaults),
  );

  const results = finalists.map(({ candidate }, i): Finalist => {
    const [searched, heldOut] = [rateAt(0, i), rateAt(1, i)];
    const [searchedDraws, heldOutDraws] = [resampled[0][i], resampled[1][i]];
    const base = defaultAt === -1 ? 0 : rateAt(1, defaultAt);
    return {
      candidate,
      isDefault: i === defaultAt,
      searchedLoad: sustainedLoad(points[0][i], slo),
      searched: { value: searched, interval: percentileInterval(searchedDraws) },
      heldOut: { value: heldOut, interval: percentileInterval(heldOutDraws) },
      overDefaults:
        base === 0
          ? null
          : {
              value: heldOut / base,
              // On the same resampled blocks, so that what both share cancels out.
              interval: percentileInterval(
                heldOutDraws.map((value, draw) => value / Math.max(1e-9, resampled[1][defaultAt][draw])),
              ),
            },
      // Resampling raises the sustained load, as some resamples lack the worst blocks: both sides carry that, and here
      // it cancels out.
      prediction: percentileInterval(
        searchedDraws.map((value, draw) => 2 * searched - value + heldOutDraws[draw] - heldOut),
      ),
      heldOutPoints: points[1][i],
    };
  });
  const [winner, ...others] = results;
  return [winner!, ...others.sort((a, b) => b.heldOut.value - a.heldOut.value)];
}

/** Without those that differ from a better one in settings that never bind. */
function differentOf(ranked: readonly SearchedCandidate[]): SearchedCandidate[] {
  const first = new Map<string, SearchedCandidate>();
  for (const found of ranked) {
    const { weights, speculationDepth, split, priority } = found.candidate;
    const key = `${weights} ${speculationDepth} ${split} ${priority} ${found.score.toPrecision(3)}`;
    if (!first.has(key)) first.set(key, found);
  }
  return [...first.values()];
}
