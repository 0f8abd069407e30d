import type { JobEngine } from '@servegym/jobs';
import { type EngineProfile, portableMath, scaleRate, type Trace } from '@servegym/simulator';
import type { RefusedRequests } from '../deployment/deployment.ts';
import { servingCommands } from '../deployment/serving-command.ts';
import { assumesNothing, basisOf } from '../report/result.ts';
import { tuneVerdict } from '../report/tune-report.ts';
import { searchAutoscalers } from '../search/autoscaled.ts';
import {
  type Candidate,
  type CandidateSpace,
  candidateKey,
  emptySpace,
  homeOf,
  isPossible,
  type Knob,
  namedValues,
  neighbours,
  profileSpaceOf,
  spaceFillingCandidates,
  vllmDefaults,
} from '../search/candidate.ts';
import {
  type EngineChoice,
  Evaluator,
  type EvaluatorOptions,
  fewestThatHold,
  SURGE,
  wholeGroups,
} from '../search/evaluator.ts';
import { goodShare, type LoadPoint, sloUse } from '../search/load-point.ts';
import { choicesOn, LoadQuestion, type LoadStage, type SearchedLoad } from '../search/load-question.ts';
import { profileError, widened } from '../search/profile-error.ts';
import { type RouterChoice, type SearchSpace, searchedSpace } from '../search/search-space.ts';
import { Searcher } from '../search/searcher.ts';
import type { SloTerm } from '../search/slo.ts';
import { sustainedLoad, sustainedRate } from '../search/sustained-load.ts';
import { joinTraffic, requestRate, type SplitTraffic, type Traffic } from '../search/traffic.ts';
import { choicesOf, controllerGain, frontPoints, pointFigures } from './choices.ts';
import { type Finalist, measureFinalists } from './finalists.ts';
import type { ImpossibleTune, Objective, PossibleTune, TuneResult } from './tune-result.ts';

/** The load at which a controller is asked for: a bit more than fixed settings sustain. */
const CONTROLLER_LOAD = 1.2;

/** Finds the settings that serve a traffic best on a profile. */
export async function tuneProfile(
  jobs: JobEngine,
  profile: EngineProfile,
  split: SplitTraffic,
  options: TuneOptions,
): Promise<TuneResult> {
  const { slo, objective, rateScale, onProgress = () => undefined } = options;
  const started = performance.now();
  let stage = '';
  const evaluator = new Evaluator(jobs, options, (share) => onProgress(stage, share));
  const say = (next: string) => {
    stage = next;
    onProgress(stage, 0);
  };
  const { values: space, left } = profileSpaceOf(profile, {
    space: options.space,
    minQuality: options.minQuality,
    hasPrefixes: split.search.trace.prefixBlocks !== undefined,
    hasClasses: split.search.priorities !== undefined,
    mostReplicas: options.replicas[1],
  });
  const fixed =
    options.trace === undefined
      ? 'the traffic has no arrivals of its own'
      : options.replicas[1] === 1
        ? 'one engine serves'
        : undefined;
  const targetLoad = rateScale / options.replicas[1];
  const how = { ...options, onStage: say, targetLoad };
  const { ranked, ...effort } = await searchSettings(evaluator, profile, space, split.search, how);
  const whole = joinTraffic([split.search, split.heldOut]);
  say('the finalists');
  const finalists = await measureFinalists(evaluator, split, ranked, objective);
  const common = (): Omit<ImpossibleTune, 'possible' | 'nearest'> => ({
    ...{ profile, objective, slo, ...effort },
    ...searchedSpace({ ...options.space, ...namedValues(space) }, [{ ...left, autoscaler: fixed }]),
    ...{ trace: whole.trace.source, refused: options.refused },
    requestsSearched: split.search.trace.arrivalMs.length,
    requestsHeldOut: split.heldOut.trace.arrivalMs.length,
    ...(whole.concurrency === undefined
      ? { requestsPerS: requestRate(whole) * rateScale }
      : { requestsPerS: null, concurrency: Math.max(1, Math.round(whole.concurrency * rateScale)) }),
    simulations: evaluator.simulations,
    simulatedRequests: evaluator.simulatedRequests,
    wallS: (performance.now() - started) / 1000,
  });
  if (finalists[0].searched.value === 0) {
    say('whether anything meets the SLO');
    const { profile: _, ...nearest } = await evaluator.nearest(split.search, ranked);
    return { ...common(), possible: false, nearest };
  }
  const found = await describeFinalists(evaluator, { split, whole }, { finalists, ranked }, options, say);
  say('autoscalers');
  const autoscaled = await autoscale(evaluator, whole, finalists, options);
  const result = { ...common(), possible: true as const, ...found, autoscaled };
  return { ...result, verdict: tuneVerdict(result, found.controller) };
}

/** Figures of the finalists, and what the best of them takes to serve the whole traffic. */
async function describeFinalists(
  evaluator: Evaluator,
  { split, whole }: { readonly split: SplitTraffic; readonly whole: Traffic },
  {
    finalists,
    ranked,
  }: { readonly finalists: readonly Finalist[]; readonly ranked: readonly SearchedLoad[] },
  { rateScale, replicas: allowed, space: { router: routers } }: TuneOptions,
  say: (stage: string) => void,
) {
  const [winner] = finalists;
  const { profile } = winner;
  say('replicas');
  const engines = await planReplicas(evaluator, whole, winner, rateScale, allowed, routers);
  const { replicas, router } = engines.deployment;

  say('the Pareto front');
  const referenceLoad = replicas === null ? 0.8 * winner.searchedLoad : rateScale / replicas;
  const controllerLoad = CONTROLLER_LOAD * winner.searchedLoad;
  const choices = choicesOf(ranked);
  const atLoads = await evaluator.measure(
    split.search,
    choices.map(({ profile, candidate }) => ({ profile, candidate, loads: [referenceLoad, controllerLoad] })),
  );
  const latencies = await evaluator.measure(
    split.heldOut,
    finalists.map(({ candidate }) => ({ profile, candidate, loads: [referenceLoad] })),
    { seed: evaluator.heldOutSeed },
  );
  const { front, others } = frontPoints(evaluator.slo, split.search, choices, atLoads, referenceLoad);
  const onFront = new Set(front.map((point) => candidateKey(point.settings)));
  const candidates = finalists.map(({ candidate, isDefault, searched, heldOut, overDefaults }, i) => ({
    ...{ settings: candidate, isDefault, overDefaults, ...basisOf(profile, candidate) },
    onFront: onFront.has(candidateKey(candidate)),
    sustainedRps: {
      ...heldOut,
      interval: widened(heldOut.interval, profileError(profile, candidate.weights).share),
    },
    sustainedRpsSearched: searched,
    ...pointFigures(profile, whole, candidate, heldOut.value, latencies[i][0]),
  }));
  const { heldOut, prediction } = winner;
  return {
    ...{ candidates, front, others },
    confirmed: heldOut.value >= prediction.low && heldOut.value <= prediction.high,
    predictedRps: prediction,
    referenceRps: latencies[0][0].rate,
    ...engines,
    controller: controllerGain(
      atLoads.map((points) => points.find(({ load }) => load === controllerLoad)!),
      evaluator.seed,
    ),
    commands: servingCommands(profile, winner.candidate, replicas ?? allowed[1], { router }),
  };
}

/** The autoscaler with the lowest bill, of all finalists. */
async function autoscale(
  evaluator: Evaluator,
  whole: Traffic,
  finalists: readonly Finalist[],
  { rateScale, replicas: allowed, trace, space: { router: routers, autoscaler = [] } }: TuneOptions,
): Promise<PossibleTune['autoscaled']> {
  if (autoscaler.length === 0 || trace === undefined) return undefined;
  const sized = finalists
    .filter(({ heldOut, searchedLoad }) => heldOut.value > 0 && searchedLoad > 0)
    .map(async ({ profile, candidate, searchedLoad: load, heldOut: { value: sustained } }) => {
      const engine = { profile, candidate, load, sustained };
      const how = { routers };
      const { replicas, router } = await fewestThatHold(evaluator, whole, engine, rateScale, allowed, how);
      return replicas === null ? [] : [{ profile, candidate, router, most: replicas }];
    });
  const fleets = (await Promise.all(sized)).flat();
  const { found } = await searchAutoscalers(evaluator, scaleRate(trace, rateScale), fleets, autoscaler);
  const tried = found.flatMap((each, i) =>
    each === undefined ? [] : [each && { ...each, settings: fleets[i].candidate, most: fleets[i].most }],
  );
  const holding = tried.filter((each) => each !== null).sort((a, b) => a.usdPerHour - b.usdPerHour);
  return tried.length === 0 ? undefined : (holding[0] ?? null);
}

/** Engines for the whole traffic, and for a surge: with more of them, and on the same. */
async function planReplicas(
  evaluator: Evaluator,
  whole: Traffic,
  { profile, candidate, searchedLoad, heldOut }: Finalist,
  rateScale: number,
  replicas: TuneOptions['replicas'],
  routers: readonly RouterChoice[] | undefined,
): Promise<Pick<PossibleTune, 'deployment' | 'at_1_5_times'>> {
  const engine = { profile, candidate, load: searchedLoad, sustained: heldOut.value };
  const fewest = (load: number) => fewestThatHold(evaluator, whole, engine, load, replicas, { routers });
  const deployment = await fewest(rateScale);
  const surge = await fewest(rateScale * SURGE);
  const strained = await evaluator.at(whole, engine, rateScale * SURGE, {
    replicas: deployment.replicas ?? wholeGroups(candidate, replicas[1]),
    router: deployment.router,
  });
  return { deployment, at_1_5_times: { ...surge, goodOnSameReplicas: goodShare(strained) } };
}

interface TuneOptions extends Pick<SearchOptions, 'objective' | 'start' | 'onBest'>, EvaluatorOptions {
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
    // The best may assume what nobody measured: the best of the others is looked for beside it.
    kindOf: (choice) => (assumesNothing(choice) ? 'without assumptions' : 'with assumptions'),
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
  const open = always.filter((each) => !isFull.has(question.keyOf(each)));
  await searcher.evaluate(open, DEFAULTS);
  // Of requests in flight, settings that hold fewer may serve more a second.
  const near: LoadStage = {
    ...{ name: 'the neighbours of the best', ...WHOLE, search: NEAR },
    floor: traffic.concurrency === undefined ? 1 : FLOOR,
  };
  const [homeKey, defaultKey] = [candidateKey(home), candidateKey(defaults)];
  const isOutside = ({ candidate }: SearchedLoad) =>
    candidateKey(candidate) === defaultKey && homeKey !== defaultKey;
  const around = (found: SearchedLoad) =>
    isOutside(found) ? [] : choices(neighbours(profile, space, found.candidate));
  await searcher.climb(near, around);
  const plain = { ...near, name: 'the neighbours of the best without assumptions' };
  await searcher.climb(plain, (found) => around(found).filter(assumesNothing), assumesNothing);
  const [best] = searcher.ranked;
  const how = traffic.concurrency === undefined ? { ...WHOLE, steps: SIDE_BY_SIDE } : near;
  const ranked = best.load === 0 ? searcher.ranked : await sideBySide(searcher, choices, home, how);
  return {
    considered: searcher.considered,
    /** Candidates that were not, as their work alone takes too long. */
    ruledOut: searcher.ruledOut,
    agreements: searcher.agreements,
    /** Candidates measured on all of the search traffic, the best first, but vLLM's defaults last where they are not in the space. */
    ranked: ranked.toSorted((a, b) => Number(isOutside(a)) - Number(isOutside(b))),
  };
}

/**
 * Brackets end at different loads for different candidates. Those that are close are measured at the same ones, then with
 * settings back at their defaults.
 */
async function sideBySide(
  searcher: Searcher<EngineChoice, SearchedLoad, LoadStage>,
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
  const [point] = points;
  if (objective !== 'latency') {
    const isOpenLoop = traffic.concurrency === undefined;
    if (points.length > 1)
      return isOpenLoop ? sustainedLoad(points, slo) : sustainedRate(points, traffic, slo);
    // At a single load: the more of the SLO is left there, the better.
    return (isOpenLoop ? point.load : point.rate) / (1 + portableMath.log1p(sloUse(point, slo)));
  }
  if (point === undefined) return 0;
  const worst = Math.max(...slo.map(({ limitMs }, t) => (point.values[t] ?? Number.NaN) / limitMs));
  // Requests that are never served have no latency to count.
  return Number.isNaN(worst) ? 0 : 1 / (worst * Math.max(1, sloUse(point, slo) / 100));
}
