import { percentileInterval } from '@servegym/simulator/statistics';
import { assumesNothing, type Estimate } from '../report/result.ts';
import { type Candidate, candidateKey, vllmDefaults } from '../search/candidate.ts';
import type { CloseLoad, Evaluator } from '../search/evaluator.ts';
import type { SearchedLoad } from '../search/load-question.ts';
import type { SplitTraffic } from '../search/traffic.ts';
import type { Objective } from './tune-result.ts';

const FINALISTS = 5;
/** Loads around the sustained one at which the finalists are measured. */
const STEPS = [0.65, 0.8, 0.9, 0.95, 1.05, 1.12, 1.25, 1.5];

/** A candidate that the search has put forward, measured closely on the traffic of the search and on the held-out. */
export type Finalist = Awaited<ReturnType<typeof measureFinalists>>[number];

/** The best, the best of each precision, without speculation, without assumptions and in pairs, and vLLM's defaults, on both traffics. */
export async function measureFinalists(
  evaluator: Evaluator,
  { search: traffic, heldOut: unseen }: SplitTraffic,
  ranked: readonly SearchedLoad[],
  objective: Objective,
) {
  const defaultKey = candidateKey(vllmDefaults(ranked[0].profile));
  const chosen = chooseFinalists(ranked, defaultKey).map(({ profile, candidate, load }) => ({
    ...{ profile, candidate },
    search: { guess: objective === 'latency' ? 1 : load || 1, step: 1.15, tolerance: 1.05 },
  }));
  const onSearch = await evaluator.closely(traffic, chosen, { steps: STEPS });
  const onHeldOut = await evaluator.closely(unseen, chosen, { steps: STEPS, seed: evaluator.heldOutSeed });
  const defaults = onHeldOut.find(({ candidate }) => candidateKey(candidate) === defaultKey);
  const results = onSearch.map((found, i) => {
    const [searched, heldOut] = [found.sustained, onHeldOut[i].sustained];
    return {
      ...{ profile: found.profile, candidate: found.candidate },
      isDefault: onHeldOut[i] === defaults,
      searchedLoad: found.load,
      searched: { value: searched, interval: percentileInterval(found.draws) },
      heldOut: { value: heldOut, interval: percentileInterval(onHeldOut[i].draws) },
      overDefaults: ratioOf(onHeldOut[i], defaults),
      // Resampling raises the sustained load, as some resamples lack the worst blocks: both sides carry that, and here
      // it cancels out.
      prediction: percentileInterval(
        found.draws.map((value, draw) => 2 * searched - value + onHeldOut[i].draws[draw] - heldOut),
      ),
    };
  });
  const [winner, ...others] = results;
  return [winner!, ...others.sort((a, b) => b.heldOut.value - a.heldOut.value)];
}

function chooseFinalists(ranked: readonly SearchedLoad[], defaultKey: string): SearchedLoad[] {
  const first = (holds: (candidate: Candidate) => boolean) =>
    ranked.find(({ candidate }) => holds(candidate));
  const precisions = new Set(ranked.map(({ candidate }) => candidate.weights));
  // Settings that never bind make no difference: one of those that come to the same is enough.
  const alike = Map.groupBy(ranked, ({ candidate: { weights, speculationDepth, split, priority }, score }) =>
    [weights, speculationDepth, split, priority, score.toPrecision(3)].join(' '),
  );
  const different = [...alike.values()].map(([best]) => best);
  const found = [
    ...different.slice(0, FINALISTS),
    ...[...precisions].map((precision) => first(({ weights }) => weights === precision)),
    first(({ speculationDepth }) => speculationDepth === 0),
    ranked.find(assumesNothing),
    first(({ split }) => split !== false),
    first(({ priority }) => priority),
    first((candidate) => candidateKey(candidate) === defaultKey),
  ].filter((each) => each !== undefined);
  return [...new Map(found.map((each) => [candidateKey(each.candidate), each])).values()];
}

/** What one sustains over what the other does, on the same resampled blocks, so that what both share cancels out. */
function ratioOf(one: CloseLoad, other: CloseLoad | undefined): Estimate | null {
  if (other === undefined || other.sustained === 0) return null;
  const ratios = one.draws.map((value, draw) => value / Math.max(1e-9, other.draws[draw]));
  return { value: one.sustained / other.sustained, interval: percentileInterval(ratios) };
}
