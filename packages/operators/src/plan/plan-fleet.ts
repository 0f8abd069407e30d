import type { JobEngine } from '@servegym/jobs';
import { type EngineProfile, type Trace, WEIGHT_PRECISIONS, type WeightPrecision } from '@servegym/simulator';
import { basisOf } from '../report/result.ts';
import { searchAutoscalers } from '../search/autoscaled.ts';
import {
  type Candidate,
  type CandidateSpace,
  candidateKey,
  emptySpace,
  engineUsd,
  fewestEngines,
  homeOf,
  isPossible,
  precisionsOf,
  profileSpaceOf,
  spaceFillingCandidates,
  vllmDefaults,
} from '../search/candidate.ts';
import { type EngineChoice, Evaluator, type EvaluatorOptions, wholeGroups } from '../search/evaluator.ts';
import { choicesOn, LoadQuestion, type LoadStage, type SearchedLoad } from '../search/load-question.ts';
import { chanceWithin, profileError } from '../search/profile-error.ts';
import {
  profileSpace,
  profilesIn,
  type RouterChoice,
  type SearchSpace,
  searchedSpace,
} from '../search/search-space.ts';
import { Searcher } from '../search/searcher.ts';
import { TuningError } from '../search/slo.ts';
import { LEAST_LOAD } from '../search/sustained-load.ts';
import { traceWork } from '../search/trace-cost.ts';
import { joinTraffic, type SplitTraffic, someBlocks, type Traffic } from '../search/traffic.ts';
import type { NearestMiss } from '../tune/tune-result.ts';
import {
  type FleetPlan,
  type NearPlan,
  type PlanPool,
  type PlanResult,
  type RefusedProfile,
  servedBy,
} from './plan-result.ts';
import { LEVELS, measureEngine, type PlannedTraffic, sizeFleet } from './size-fleet.ts';

export interface PlanOptions extends EvaluatorOptions {
  readonly mostEngines: number;
  /** Least accuracy of the weights, relative to FP16. */
  readonly minQuality: number;
  /** Dimensions to search. Default `PLAN_SPACE`, and all profiles. */
  readonly space?: SearchSpace | undefined;
  /** What plans may take for granted beside measurements: names of `ASSUMPTIONS`. */
  readonly allow: readonly string[];
  readonly onSearch?: (state: SearchState) => void;
  /** Told how many kinds of engines are sized. */
  readonly onProgress?: (done: number, of: number) => void;
  /** Told of the plans of each kind of engines, as it is done; which of them are on the front is not known yet. */
  readonly onPlans?: (plans: readonly FleetPlan[]) => void;
}

interface SearchState {
  readonly stage: string;
  /** Share of the stage that is done. */
  readonly share: number;
  /** Simulations that are done, and how many a second. */
  readonly simulations: number;
  readonly rate: number;
  /** What looks cheapest on the part of the traffic that was played last, in the end all that is searched on; `null` before. */
  readonly best: {
    readonly engines: number;
    readonly usdPerHour: number;
    readonly profile: string;
    readonly weights: string;
  } | null;
  /** Rank correlation of the last part of the traffic with a larger one; `null` where there was none yet. */
  readonly correlation: number | null;
}

/** Assumptions of plans: drafts accepted as on other traffic, profiles from data sheets, quantized weights. */
export const ASSUMPTIONS = ['drafts', 'estimated', ...WEIGHT_PRECISIONS.map((each) => each.toLowerCase())];

/** Blocks of the traffic for the first looks. */
const FIRST_BLOCKS = 4;
const FIRST_LOOK: LoadStage = {
  ...{ name: 'the defaults', blocks: FIRST_BLOCKS, search: { step: 2, tolerance: 1.5 } },
};
/** Settings that sustain less than this share of the best of their kind are not looked for. */
const FLOOR = { floor: 0.5, lowers: true };
const STAGES: readonly LoadStage[] = [
  { name: 'other settings', blocks: FIRST_BLOCKS, search: { step: 1.4, tolerance: 1.5 }, ...FLOOR },
  {
    ...{ name: 'the best of each kind', blocks: Number.POSITIVE_INFINITY, keep: 0, fewest: 2 },
    ...{ search: { step: 1.25, tolerance: 1.12 }, ...FLOOR },
  },
];
/** Drafts and divided engines are sized where so much of the load that is expected of fewer engines than without them would be enough. */
const HOPEFUL = 0.7;

/** Where fewer plans meet the SLO, those are named too that miss it by less than the error of their profile. */
const NAMED = 3;
/** Room above a latency that misses its limit, for a load at which requests meet: a choice. */
const ROOM = 1.02;
/** Smaller chances are not worth a row: a choice. */
const LEAST_CHANCE = 0.05;

/** What is tried with each profile. `tune` searches more of one. */
export const PLAN_SPACE = {
  max_num_seqs: [32, 64, 128, 256, 1024],
  max_num_batched_tokens: [2048, 8192],
  speculation: [0, 3],
  quantization: WEIGHT_PRECISIONS,
  split: [false, '1:1', '1:2', '2:1', '1:3', '3:1'],
  router: ['prefix_aware', 'least_loaded'],
} as const satisfies SearchSpace;
const ONE_ROUTER: readonly RouterChoice[] = ['least_loaded'];
/** Settings of each precision, evenly over a space that has more. */
const MOST_SETTINGS = 64;

/** For every profile and precision: the best settings, the engines that the whole traffic takes, and what they cost. */
export async function planFleet(
  jobs: JobEngine,
  profiles: readonly EngineProfile[],
  given: Pick<PlanResult, 'refused'> & { readonly trace: Trace; readonly split: SplitTraffic },
  options: PlanOptions,
): Promise<PlanResult> {
  const started = performance.now();
  const { trace, split, refused } = given;
  const { slo, mostEngines, allow, onPlans } = options;
  const whole = joinTraffic([split.search, split.heldOut]);
  const few = someBlocks(split.search, FIRST_BLOCKS);
  const asked: SearchSpace = options.space ?? PLAN_SPACE;
  const space = { quantization: WEIGHT_PRECISIONS, router: ONE_ROUTER, ...asked };
  const { router: routers } = space;
  const traffic: PlannedTraffic = { trace, work: traceWork(trace), whole, few, routers, ...split };
  let state: SearchState = {
    ...{ stage: '', share: 0, simulations: 0, rate: 0, best: null, correlation: null },
  };
  const tell = (change: Partial<SearchState>) => {
    const { simulations } = evaluator;
    state = { ...state, ...change, simulations };
    options.onSearch?.({ ...state, rate: (1000 * simulations) / (performance.now() - started) });
  };
  const evaluator = new Evaluator(jobs, options, (share) => tell({ share }));
  const kinds = kindsIn(space, profiles, options);
  const { engines: searched, ...effort } = await searchEngines(evaluator, split.search, kinds, {
    ...{ ...options, space },
    onStage: (stage, agreements) =>
      tell({ stage, share: 0, correlation: agreements.at(-1)?.correlation ?? null }),
    onBest: ({ profile, candidate, load }) => {
      if (load === 0) return;
      const engines = Math.ceil(1 / load);
      const usdPerHour = engines * engineUsd(profile);
      tell({ best: { engines, usdPerHour, profile: profile.name, weights: candidate.weights } });
    },
  });
  const correlation = effort.agreements.at(-1)?.correlation ?? null;
  tell({ stage: 'engines for all of the traffic', share: 0, correlation });
  const fleets: FleetPlan[] = [];
  const notPlanned: RefusedProfile[] = [];
  let done = 0;
  // As many as there are threads, those that look cheapest first.
  const waiting = searched.values();
  const sizeNext = async () => {
    for (const { kind, choices, found } of waiting) {
      const how = { mostEngines, keepsWhole: asked.autoscaler !== undefined };
      const own = await plansOf(evaluator, traffic, found, choices, how);
      for (const each of own) {
        if (!('plan' in each)) notPlanned.push({ ...kind, ...each });
        else fleets.push({ ...each.plan, weightsAlike: kind.weightsAlike });
      }
      onPlans?.(fleets.slice(-own.length));
      options.onProgress?.(++done, kinds.length);
    }
  };
  await Promise.all(Array.from({ length: jobs.width }, sizeNext));
  // Which kind is done first must change nothing.
  notPlanned.sort((a, b) => compareNames(a, b) || (a.precision < b.precision ? -1 : 1));
  const ranked = rankPlans(fleets, allow);
  tell({ stage: 'autoscalers', share: 0 });
  const { plans, riskier, agreements, ruledOut } = await autoscale(evaluator, traffic, ranked, options);
  const missed = await nameMisses(jobs, evaluator, options, traffic, notPlanned, ranked.plans.length);
  return {
    ...{ slo, trace: trace.source, refused, ...ratesOf(trace) },
    requestsSimulated: whole.trace.arrivalMs.length,
    ...{ allow, plans, riskier, notPlanned, ...missed, mostEngines, ...effort },
    notSearched: { ...effort.notSearched, kinds_of_gpu: 'one in a fleet' },
    agreements: [...effort.agreements, ...agreements],
    ruledOut: effort.ruledOut + ruledOut,
    simulations: evaluator.simulations,
    simulatedRequests: evaluator.simulatedRequests,
    wallS: (performance.now() - started) / 1000,
  };
}

/** Profiles and precisions that are planned. @throws {TuningError} when there are none */
function kindsIn(
  space: SearchSpace & { readonly quantization: readonly WeightPrecision[] },
  profiles: readonly EngineProfile[],
  { minQuality, allow }: Pick<PlanOptions, 'minQuality' | 'allow'>,
) {
  const { quantization } = space;
  const kinds = profilesIn(space, profiles).flatMap((profile) =>
    alikePrecisions(
      profile,
      precisionsOf(profile, minQuality).filter((each) => quantization.includes(each)),
      allow,
    ).map(([precision, ...weightsAlike]) => ({ profile, precision, weightsAlike })),
  );
  if (kinds.length > 0) return kinds;
  const expected = `weights of ${quantization.join(', ')} with an accuracy of at least ${minQuality}`;
  throw new TuningError('EMPTY_SEARCH_SPACE', `no profile has ${expected}`);
}

function ratesOf({ arrivalMs, inputTokens, outputTokens }: Trace) {
  const requests = arrivalMs.length;
  const seconds = arrivalMs[requests - 1] / 1000;
  const sum = (values: Int32Array) => values.reduce((total, value) => total + value, 0);
  return {
    ...{ requests, hours: seconds / 3600, requestsPerS: (requests - 1) / seconds },
    ...{ inputTokensPerS: sum(inputTokens) / seconds, outputTokensPerS: sum(outputTokens) / seconds },
  };
}

/** Plans with the autoscalers that suit them, ranked by their bills; of prefill and decode together and apart the cheaper one. */
async function autoscale(
  evaluator: Evaluator,
  { trace }: PlannedTraffic,
  ranked: ReturnType<typeof rankPlans>,
  { allow, space: { autoscaler = [] } = {} }: Pick<PlanOptions, 'allow' | 'space'>,
) {
  const { plans, riskier } = ranked;
  const whole = plans.filter(({ pools }) => pools.length === 1);
  const fleets = whole.map(({ profile, settings, router, engines, lowerBoundUsdPerHour }) => ({
    ...{ profile, candidate: settings, router, most: engines, leastUsd: lowerBoundUsdPerHour },
  }));
  // What cannot be among the first is not looked at.
  const most = plans[NAMED - 1]?.usdPerHour;
  const { found, ...effort } = await searchAutoscalers(evaluator, trace, fleets, autoscaler, most);
  const scaled = plans.map((plan) => {
    const at = whole.indexOf(plan);
    return at < 0 || found[at] === undefined ? plan : { ...plan, autoscaler: found[at] };
  });
  const again = rankPlans([...scaled, ...riskier], allow);
  const cheapest = (some: readonly FleetPlan[]) =>
    some.filter((plan, at) => !some.slice(0, at).some((each) => isOfKind(each, plan)));
  return { plans: cheapest(again.plans), riskier: cheapest(again.riskier), ...effort };
}

/** Whether two plans are of one kind of engines, in whatever roles. */
function isOfKind(a: FleetPlan, b: FleetPlan): boolean {
  const nameOf = ({ pools }: FleetPlan) =>
    pools.map(
      ({ profile, settings: { weights, speculationDepth } }) =>
        `${profile.name} ${weights} ${speculationDepth}`,
    );
  return new Set([...nameOf(a), ...nameOf(b)]).size === 1;
}

/** Where few plans meet the SLO: those that miss it by less than the error of their profile; where none does, what comes nearest. */
async function nameMisses(
  jobs: JobEngine,
  evaluator: Evaluator,
  options: PlanOptions,
  traffic: PlannedTraffic,
  notPlanned: readonly RefusedProfile[],
  planned: number,
): Promise<Pick<PlanResult, 'near' | 'nearest'>> {
  const missing = Math.max(0, NAMED - planned);
  const isOwn = (each: EngineChoice) => isAllowed(basisOf(each.profile, each.candidate), options.allow);
  const refusedKinds = notPlanned.filter(({ tried }) => tried.length > 0);
  const own = refusedKinds.filter(({ tried }) => tried.some(isOwn));
  const misses = await Promise.all(
    (missing === 0 ? [] : own.length > 0 ? own : refusedKinds).map(async ({ tried, tooFew }) => {
      const on = tooFew === undefined ? traffic.few : traffic.whole;
      const from = own.length > 0 ? tried.filter(isOwn) : tried;
      return { engines: tooFew, ...(await evaluator.nearest(on, from, tooFew)) };
    }),
  );
  misses.sort((a, b) => a.timesLimit - b.timesLimit || compareNames(a, b));
  const near = await Promise.all(
    misses
      .filter(({ engines }) => engines === undefined && own.length > 0)
      .slice(0, missing)
      .map((miss) => nearPlan(jobs, options, traffic, miss)),
  );
  return {
    near: near
      .filter((plan) => plan !== null)
      .sort((a, b) => a.usdPerHour / a.chance - b.usdPerHour / b.chance || compareNames(a, b)),
    nearest: planned === 0 && misses.length > 0 ? { ...misses[0], engines: misses[0].engines ?? 1 } : null,
  };
}

/**
 * The plan for settings that miss the SLO by less than the error of their profile, with bounds that are wider by what they
 * miss; `null` where the chance that they hold the SLO is small.
 */
async function nearPlan(
  jobs: JobEngine,
  { seed, record, mostEngines, ...options }: PlanOptions,
  traffic: PlannedTraffic,
  { profile, settings: candidate }: Pick<NearestMiss, 'settings'> & Pick<EngineChoice, 'profile'>,
): Promise<NearPlan | null> {
  const alone = new Evaluator(jobs, { ...options, seed, record });
  const { values } = await alone.at(traffic.whole, { profile, candidate }, LEAST_LOAD);
  const slo = options.slo.map((term, i) =>
    values[i] <= term.limitMs ? term : { ...term, limitMs: ROOM * values[i] },
  );
  const latencies = options.slo.map(({ metric, limitMs }, i) => ({
    ...{ metric, limitMs, ms: values[i] <= limitMs ? values[i] : slo[i].limitMs },
  }));
  const chance = chanceWithin(latencies, profileError(profile, candidate.weights));
  if (chance < LEAST_CHANCE) return null;
  const evaluator = new Evaluator(jobs, { slo, seed, record });
  const search = { guess: 1, step: 2, tolerance: 1.5 };
  const [rough] = await evaluator.sustained(traffic.few, [{ profile, candidate, search }]);
  const engine = await measureEngine(evaluator, traffic, rough, rough.load);
  const plan = engine.sustained === 0 ? null : await sizeFleet(evaluator, traffic, engine, mostEngines);
  return plan && { ...plan, chance };
}

/** What settings of each kind sustain, those that assume nothing else first, and of them those that look cheapest; with drafts apart, as they are assumed. */
async function searchEngines(
  evaluator: Evaluator,
  traffic: Traffic,
  kinds: ReturnType<typeof kindsIn>,
  options: PlanOptions & Pick<ConstructorParameters<typeof LoadQuestion>[2], 'onStage' | 'onBest'>,
) {
  const { mostEngines, space = PLAN_SPACE, minQuality, allow, onStage, onBest } = options;
  const nameOf = (profile: EngineProfile, weights: WeightPrecision) => `${profile.name} ${weights}`;
  const question = new LoadQuestion(evaluator, traffic, {
    kindOf: ({ profile, candidate: { weights, speculationDepth, split } }) =>
      `${nameOf(profile, weights)}${speculationDepth > 0 ? ' drafts' : ''}${split ? ' divided' : ''}`,
    ...{ onStage, onBest },
    // USD an hour of what is expected to serve the traffic; of as many engines the one that sustains most.
    scoreOf: ({ profile, candidate, load }) => {
      const fewest = fewestEngines(candidate);
      const engines = load === 0 ? Number.MAX_SAFE_INTEGER : fewest * Math.ceil(1 / load / fewest);
      return engineUsd(profile) * (load / (1 + load) - engines);
    },
  });
  const searcher = new Searcher(question);
  const spaces = kinds.map(({ profile, precision }) => {
    return profileSpaceOf(profile, {
      space: { ...space, quantization: [precision] },
      ...{ minQuality, mostReplicas: mostEngines, hasClasses: false },
      hasPrefixes: traffic.trace.prefixBlocks !== undefined,
    });
  });
  const settings = kinds.map(({ profile }, i) => {
    const { values } = spaces[i];
    const alone = { ...values, split: values.split.filter((each) => each === false) };
    if (alone.split.length === 0) return [];
    const home = candidateKey(homeOf(alone, vllmDefaults(profile)));
    const isHome = (each: Candidate) => Number(candidateKey(each) === home);
    const found = spaceFillingCandidates(profile, alone, MOST_SETTINGS);
    found.sort((a, b) => isHome(b) - isHome(a));
    return choicesOn(profile, found);
  });
  const fits = kinds.findIndex(({ profile, precision }) =>
    isPossible(profile, { ...vllmDefaults(profile), weights: precision }),
  );
  const isWhole = spaces.some(({ values }) => values.split.includes(false));
  if (fits >= 0 && isWhole && settings.every((choices) => choices.length === 0))
    throw emptySpace(kinds[fits].profile, spaces[fits].values);
  // The first with and without drafts say where to look at the others.
  const first = settings.flatMap((choices) => [
    ...new Map(choices.toReversed().map((each) => [question.kindOf(each), each])).values(),
  ]);
  const known = await searcher.evaluate(first, FIRST_LOOK);
  const isKnown = new Set(first);
  const others = kinds.flatMap(({ profile, precision }, i) => {
    const load = known.find((each) => question.kindOf(each) === nameOf(profile, precision))?.load ?? 0;
    const split = dividedOf(profile, spaces[i].values, load, mostEngines);
    return [...settings[i].filter((each) => !isKnown.has(each)), ...choicesOn(profile, split)];
  });
  await searcher.halve(others, STAGES, known);
  const found = Map.groupBy(searcher.ranked, ({ profile, candidate }) => nameOf(profile, candidate.weights));
  const isPlain = ([best]: readonly SearchedLoad[]) =>
    best !== undefined && isAllowed(basisOf(best.profile, { ...best.candidate, speculationDepth: 0 }), allow);
  const scoreOf = ([best]: readonly SearchedLoad[]) => best?.score ?? -Number.MAX_VALUE;
  const engines = kinds
    .map((kind, i) => ({
      ...{ kind, choices: settings[i], found: found.get(nameOf(kind.profile, kind.precision)) ?? [] },
    }))
    .sort(
      (a, b) => Number(isPlain(b.found)) - Number(isPlain(a.found)) || scoreOf(b.found) - scoreOf(a.found),
    );
  const { ruledOut, agreements } = searcher;
  const named = { ...profileSpace(kinds.map(({ profile }) => profile)), ...space };
  const left = spaces.map((each) => each.left);
  return { engines, ruledOut, agreements, ...searchedSpace(named, left) };
}

type Planned = { readonly plan: FleetPlan } | Omit<RefusedProfile, 'profile' | 'precision'>;

/**
 * The best plan of a kind, divided into prefill and decode where that is cheaper, and one with drafts where that is cheaper still; or why
 * there is none. @param keepsWhole whether the best that is not divided stays beside one that is: it can be autoscaled
 */
async function plansOf(
  evaluator: Evaluator,
  traffic: PlannedTraffic,
  found: readonly SearchedLoad[],
  choices: readonly EngineChoice[],
  { mostEngines, keepsWhole }: { readonly mostEngines: number; readonly keepsWhole: boolean },
): Promise<Planned[]> {
  if (found.length > 0 && found[0].load === 0)
    return [{ reason: 'no settings meet the SLO', tried: choices }];
  const drafted = found.filter(({ candidate }) => candidate.speculationDepth > 0);
  const plain = found.filter((each) => !drafted.includes(each));
  const [undivided, divided] = [false, true].map((is) =>
    plain.filter(({ candidate }) => (candidate.split !== false) === is),
  );
  const fewerThan = (planned: Planned) => ('plan' in planned ? planned.plan.engines - 1 : mostEngines);
  const isHopeful = (some: readonly SearchedLoad[], most: number) =>
    some.length > 0 && most * some[0].load >= HOPEFUL;
  let best = await bestPlan(evaluator, traffic, undivided.length > 0 ? undivided : divided, mostEngines);
  const others: Planned[] = [];
  if (undivided.length > 0 && isHopeful(divided, fewerThan(best))) {
    const apart = await bestPlan(evaluator, traffic, divided, fewerThan(best));
    if ('plan' in apart) {
      if (keepsWhole && 'plan' in best) others.push(best);
      best = apart;
    }
  }
  if (!isHopeful(drafted, fewerThan(best))) return [best, ...others];
  const withDrafts = await bestPlan(evaluator, traffic, drafted, fewerThan(best));
  return 'plan' in withDrafts ? [best, withDrafts, ...others] : [best, ...others];
}

/** Precisions by what the profile says of them, of each group the one that is allowed first. */
function alikePrecisions(
  { weights }: EngineProfile,
  precisions: readonly WeightPrecision[],
  allow: readonly string[],
): WeightPrecision[][] {
  const groups = Map.groupBy(precisions, (precision) => {
    const { law, weightGiB } = weights[precision]!;
    return JSON.stringify([Object.entries(law).sort(), weightGiB]);
  });
  const isNamed = (precision: WeightPrecision) => Number(allow.includes(precision.toLowerCase()));
  return [...groups.values()].map((group) =>
    group.sort((a, b) => isNamed(b) - isNamed(a) || weights[b]!.quality - weights[a]!.quality),
  );
}

async function bestPlan(
  evaluator: Evaluator,
  traffic: PlannedTraffic,
  found: readonly SearchedLoad[],
  mostEngines: number,
): Promise<Planned> {
  const [best] = found;
  if (best === undefined) return { reason: 'the model does not fit', tried: [] };
  const engine = await measureEngine(evaluator, traffic, best, best.load);
  const onUnseen = 'the settings found do not meet the SLO on traffic they were not chosen on';
  if (engine.sustained === 0) return { reason: onUnseen, tried: [best] };
  const plan = await sizeFleet(evaluator, traffic, engine, mostEngines);
  if (plan !== null) return { plan };
  const tooFew = wholeGroups(best.candidate, mostEngines) || undefined;
  return { reason: `more than ${mostEngines} engines are needed`, tried: [best], tooFew };
}

/** Load of one engine from which on it is enough alone. */
const ALONE = 1.1;

/** Prefill apart from decode, in groups that may be as few engines as those that do both. @param load that one of these sustains */
function dividedOf(
  profile: EngineProfile,
  values: CandidateSpace,
  load: number,
  mostEngines: number,
): Candidate[] {
  const needed = load === 0 ? mostEngines : Math.min(mostEngines, Math.ceil(ALONE / load));
  const home = homeOf(values, vllmDefaults(profile));
  return values.split
    .filter((split) => split !== false)
    .map((split) => ({ ...home, split }))
    .filter((each) => fewestEngines(each) <= needed && isPossible(profile, each));
}

/** The plans, cheapest first, those that assume what was not allowed apart; marked where no cheaper one has a lower TTFT p99. */
export function rankPlans(
  plans: readonly FleetPlan[],
  allow: readonly string[],
): Pick<PlanResult, 'plans' | 'riskier'> {
  const ranked = (some: readonly FleetPlan[]) => {
    let least = Number.POSITIVE_INFINITY;
    return some.toSorted(byPrice).map((plan) => {
      const { ttftP99Ms } = servedBy(plan);
      const onFront = ttftP99Ms < least;
      least = Math.min(least, ttftP99Ms);
      return { ...plan, onFront };
    });
  };
  const { plans: safe = [], riskier = [] } = Object.groupBy(plans, (plan) =>
    isAllowed(plan, allow) ? 'plans' : 'riskier',
  );
  return { plans: ranked(safe), riskier: ranked(riskier) };
}

const isAllowed = ({ assumes }: Pick<FleetPlan, 'assumes'>, allow: readonly string[]) =>
  assumes.every((each) => allow.includes(each));

/** Cheapest first; of equal price those that are better known, then those with more headroom. */
function byPrice(a: FleetPlan, b: FleetPlan): number {
  return (
    servedBy(a).usdPerHour - servedBy(b).usdPerHour ||
    LEVELS.indexOf(a.confidence.level) - LEVELS.indexOf(b.confidence.level) ||
    b.headroom - a.headroom ||
    compareNames(a, b)
  );
}

function compareNames(a: Pick<PlanPool, 'profile'>, b: Pick<PlanPool, 'profile'>): number {
  return a.profile.name < b.profile.name ? -1 : a.profile.name > b.profile.name ? 1 : 0;
}
