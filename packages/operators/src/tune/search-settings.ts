import { type EngineProfile, portableMath, type Trace } from '@servegym/simulator';
import type { RefusedRequests } from '../deployment/deployment.ts';
import {
  type Candidate,
  type CandidateSpace,
  candidateKey,
  emptySpace,
  homeOf,
  isPossible,
  type Knob,
  neighbours,
  spaceFillingCandidates,
  vllmDefaults,
} from '../search/candidate.ts';
import type { EngineChoice, Evaluator, EvaluatorOptions } from '../search/evaluator.ts';
import { type LoadPoint, sloUse } from '../search/load-point.ts';
import { choicesOn, LoadQuestion, type LoadStage, type SearchedLoad } from '../search/load-question.ts';
import type { SearchSpace } from '../search/search-space.ts';
import { Searcher } from '../search/searcher.ts';
import type { SloTerm } from '../search/slo.ts';
import { sustainedLoad, sustainedRate } from '../search/sustained-load.ts';
import type { Traffic } from '../search/traffic.ts';
import type { Objective } from './tune-result.ts';

/** Options of a tuning. */
export interface TuneOptions extends Pick<SearchOptions, 'objective' | 'start' | 'onBest'>, EvaluatorOptions {
  /** Requests that were too long, and are not in the traffic. */
  readonly refused: RefusedRequests;
  /** Dimensions to search; settings that are not in it stay at vLLM's defaults. */
  readonly space: SearchSpace;
  readonly minQuality: number;
  /** Fewest and most engines that may share the traffic. */
  readonly replicas: readonly [fewest: number, most: number];
  /** Times the rate of the traffic. */
  readonly rateScale: number;
  /** Trace with arrivals, for autoscalers, which serve it as a whole. */
  readonly trace?: Trace | undefined;
  readonly onProgress?: (stage: string, share: number) => void;
}

export interface SearchOptions {
  /** Figure that the search maximises. */
  readonly objective: Objective;
  /** Candidates to start from. */
  readonly start: number;
  /** For `latency`: the load of one engine, times the rate of the traffic. */
  readonly targetLoad: number;
  /** Told what the search is at. */
  readonly onStage?: (stage: string) => void;
  /** Told of the best candidate on all of the search traffic, whenever there is a better one. */
  readonly onBest?: (best: SearchedLoad) => void;
}

const WHOLE = { blocks: Number.POSITIVE_INFINITY };
/** Candidates that sustain less than this share of the best are not looked at more closely. */
const FLOOR = 0.5;
/** A few candidates show which load tells good ones from bad ones. */
const SCOUTS = 48;
const FIRST_LOOK: LoadStage = { name: 'a first look', blocks: 2, search: { step: 2, tolerance: 1.3 } };
/** At least so many go into each stage. */
const KEPT = { fewest: 16, floor: FLOOR, lowers: true };
const STAGES: readonly LoadStage[] = [
  { name: 'all on a tenth of the traffic', blocks: 2, steps: [1], floor: FLOOR },
  { name: 'the better eighth', blocks: 6, keep: 1 / 8, search: { step: 1.6, tolerance: 1.2 }, ...KEPT },
  { name: 'the best', ...WHOLE, keep: 1 / 32, search: { step: 1.25, tolerance: 1.07 }, ...KEPT },
];
const DEFAULTS: LoadStage = { name: 'the defaults', ...WHOLE, search: { step: 1.6, tolerance: 1.04 } };
/** Around the best, only whether a neighbour is better still matters. */
const NEAR = { step: 1.08, tolerance: 1.02 };
/** The closest are measured at the same loads: these, times what the best sustains. */
const CLOSEST = 12;
const SIDE_BY_SIDE = [0.85, 0.93, 1, 1.06, 1.14];
/** A setting goes back to its default when that costs less than this share of the score. */
const SIMPLER = 0.01;

/**
 * Looks for the best settings: successive halving over candidates that cover the space evenly, then steps to better
 * neighbours until there are none, then back to defaults where they are as good.
 */
export async function searchSettings(
  evaluator: Evaluator,
  profile: EngineProfile,
  space: CandidateSpace,
  traffic: Traffic,
  { objective, targetLoad, start: count, onStage, onBest }: SearchOptions,
) {
  const question = new LoadQuestion(evaluator, traffic, {
    scoreOf: ({ points }, on) => score(points, on, evaluator.slo, objective),
    load: objective === 'latency' ? targetLoad : undefined,
    onStage,
    onBest: (best, isWhole) => isWhole && onBest?.(best),
  });
  const searcher = new Searcher(question);
  const defaults = vllmDefaults(profile);
  const choices = (candidates: readonly Candidate[]) => choicesOn(profile, candidates);
  // Where the engine starts with them.
  const always = choices(isPossible(profile, defaults) ? [defaults] : []);
  const start = choices(spaceFillingCandidates(profile, space, count));
  if (start.length === 0) throw emptySpace(profile, space);
  const home = homeOf(space, defaults);
  await searcher.evaluate([...always, ...start.slice(0, SCOUTS)], FIRST_LOOK);
  await searcher.halve(start, STAGES);
  const isFull = new Set(searcher.ranked.map(question.keyOf));
  await searcher.evaluate(
    always.filter((each) => !isFull.has(question.keyOf(each))),
    DEFAULTS,
  );
  // Of requests in flight, settings that hold fewer may serve more a second.
  const near: LoadStage = {
    ...{ name: 'the neighbours of the best', ...WHOLE, search: NEAR },
    floor: traffic.concurrency === undefined ? 1 : FLOOR,
  };
  const isOutside = ({ candidate }: SearchedLoad) =>
    candidateKey(candidate) === candidateKey(defaults) && candidateKey(home) !== candidateKey(defaults);
  await searcher.climb(near, (found) =>
    isOutside(found) ? [] : choices(neighbours(profile, space, found.candidate)),
  );
  const [best] = searcher.ranked;
  const ranked =
    best.load === 0
      ? searcher.ranked
      : await sideBySide(
          searcher,
          choices,
          home,
          traffic.concurrency === undefined ? { ...WHOLE, steps: SIDE_BY_SIDE } : near,
        );
  return {
    /** Different candidates that were simulated. */
    considered: searcher.considered,
    /** Candidates that were not, as their work alone takes too long. */
    ruledOut: searcher.ruledOut,
    agreements: searcher.agreements,
    /** Candidates measured on all of the search traffic, the best first, but vLLM's defaults last where they are not in the space. */
    ranked: ranked.toSorted((a, b) => Number(isOutside(a)) - Number(isOutside(b))),
  };
}

type SettingsSearcher = Searcher<EngineChoice, SearchedLoad, LoadStage>;

/**
 * Brackets end at different loads for different candidates. Those that are close are measured at the same ones, then with
 * settings back at their defaults.
 */
async function sideBySide(
  searcher: SettingsSearcher,
  choices: (candidates: readonly Candidate[]) => readonly EngineChoice[],
  defaults: Candidate,
  how: Omit<LoadStage, 'name'>,
): Promise<SearchedLoad[]> {
  const others = searcher.ranked;
  const final = new Map<string, SearchedLoad>();
  const compare = async (name: string, candidates: readonly Candidate[]) => {
    const fresh = candidates.filter((candidate) => !final.has(candidateKey(candidate)));
    for (const found of await searcher.evaluate(choices(fresh), { name, ...how }))
      final.set(candidateKey(found.candidate), found);
    return searcher.order(candidates.map((candidate) => final.get(candidateKey(candidate))!));
  };
  const closest = others.slice(0, CLOSEST).map(({ candidate }) => candidate);
  const [best] = await compare('the best side by side', closest);
  let current = best.candidate;
  while (true) {
    const simpler = (Object.keys(defaults) as Knob[])
      .filter((knob) => current[knob] !== defaults[knob])
      .map((knob): Candidate => ({ ...current, [knob]: defaults[knob] }))
      .filter((candidate) => isPossible(best.profile, candidate));
    if (simpler.length === 0) break;
    const [found] = await compare('simpler settings', simpler);
    if (found.score < best.score * (1 - SIMPLER)) break;
    current = found.candidate;
  }
  return [
    ...preferSimple(searcher.order([...final.values()]), defaults),
    ...others.filter(({ candidate }) => !final.has(candidateKey(candidate))),
  ];
}

/** Puts the candidate with the fewest changed settings first among those that are as good as the best. */
function preferSimple(candidates: readonly SearchedLoad[], defaults: Candidate): SearchedLoad[] {
  const least = candidates[0].score * (1 - SIMPLER);
  const changes = ({ candidate }: SearchedLoad) =>
    (Object.keys(candidate) as Knob[]).filter((knob) => candidate[knob] !== defaults[knob]).length;
  const asGood = candidates.filter(({ score: each }) => each >= least);
  const chosen = asGood.reduce((best, each) => (changes(each) < changes(best) ? each : best));
  return [chosen, ...candidates.filter((each) => each !== chosen)];
}

function score(
  points: readonly LoadPoint[],
  traffic: Traffic,
  slo: readonly SloTerm[],
  objective: Objective,
): number {
  if (objective !== 'latency') {
    const isOpenLoop = traffic.concurrency === undefined;
    if (points.length > 1)
      return isOpenLoop ? sustainedLoad(points, slo) : sustainedRate(points, traffic, slo);
    // At a single load: the more of the SLO is left there, the better.
    const [{ load, rate }] = points;
    return (isOpenLoop ? load : rate) / (1 + portableMath.log1p(sloUse(points[0], slo)));
  }
  const [point] = points;
  if (point === undefined) return 0;
  const worst = Math.max(...slo.map(({ limitMs }, t) => (point.values[t] ?? Number.NaN) / limitMs));
  // Requests that are never served have no latency to count.
  return Number.isNaN(worst) ? 0 : 1 / (worst * Math.max(1, sloUse(point, slo) / 100));
}
