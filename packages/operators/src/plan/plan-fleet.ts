import { isDeepStrictEqual } from 'node:util';
import type { JobEngine } from '@servegym/jobs';
import { type EngineProfile, type Trace, WEIGHT_PRECISIONS, type WeightPrecision } from '@servegym/simulator';
import {
  type Candidate,
  candidateKey,
  fewestEngines,
  isPossible,
  precisionsOf,
  type SplitRatio,
  vllmDefaults,
} from '../tune/candidate.ts';
import { CandidateMeasurer, type SustainedLoad, wholeGroups } from '../tune/measure-candidates.ts';
import type { SloTerm } from '../tune/slo.ts';
import { joinTraffic, type SplitTraffic, someBlocks } from '../tune/traffic.ts';
import { mixedFleets } from './mixed-fleets.ts';
import type { FleetPlan, PlanPool, PlanResult, RefusedProfile } from './plan-result.ts';
import { LEVELS, measureEngine, type PlannedTraffic, type SizedFleet, sizeFleet } from './size-fleet.ts';
import { traceWork } from './trace-cost.ts';

export interface PlanOptions {
  readonly slo: readonly SloTerm[];
  readonly mostEngines: number;
  readonly seed: number;
  /** Least accuracy of the weights, relative to FP16. */
  readonly minQuality: number;
  /** What plans may take for granted beside measurements: names of `ASSUMPTIONS`. */
  readonly allow: readonly string[];
  readonly onProgress?: (done: number, of: number) => void;
  /** Told of the plans of each profile, as it is done; which of them are on the front is not known yet. */
  readonly onPlans?: (plans: readonly FleetPlan[]) => void;
}

/** Assumptions of plans: drafts accepted as on other traffic, profiles from data sheets, quantized weights. */
export const ASSUMPTIONS = ['drafts', 'estimated', ...WEIGHT_PRECISIONS.map((each) => each.toLowerCase())];

/** Blocks of the traffic for the first look at the settings. */
const FIRST_BLOCKS = 4;
/** Share of what the defaults sustain, below which settings are not looked for. */
const FLOOR = 0.5;
/** Settings of each precision that are looked at closely. */
const KEPT = 2;

/** Settings that are tried with each precision. `tune` searches the whole space of one profile. */
const SEQUENCES = [32, 64, 128, 256];
const TOKENS = [2048, 8192];
const DRAFTS = [0, 3];
const SPLITS: readonly SplitRatio[] = ['1:1', '1:2', '2:1', '1:3', '3:1'];

/** For every profile and precision: the best settings, the engines that the whole traffic takes, and what they cost. */
export async function planFleet(
  jobs: JobEngine,
  profiles: readonly EngineProfile[],
  {
    trace,
    split,
    refused,
  }: Pick<PlanResult, 'refused'> & { readonly trace: Trace; readonly split: SplitTraffic },
  options: PlanOptions,
): Promise<PlanResult> {
  const started = performance.now();
  const { slo, mostEngines, allow } = options;
  const whole = joinTraffic([split.search, split.heldOut]);
  const few = someBlocks(split.search, FIRST_BLOCKS);
  const traffic: PlannedTraffic = { trace, work: traceWork(trace), whole, few, ...split };
  const engine = newestFirst(jobs);
  const measurers = new Map(
    profiles.map((profile) => [profile, new CandidateMeasurer(engine, profile, options)]),
  );
  const fleets: SizedFleet[] = [];
  const notPlanned: RefusedProfile[] = [];
  let done = 0;
  await Promise.all(
    [...measurers.values()].map(async (measurer) => {
      const found = await plansOf(measurer, traffic, options);
      const own = found.filter((each): each is SizedFleet => !('reason' in each));
      fleets.push(...own);
      notPlanned.push(...found.filter((each): each is RefusedProfile => 'reason' in each));
      options.onPlans?.(own.map(({ plan }) => plan));
      options.onProgress?.(++done, profiles.length);
    }),
  );
  // Which profile is done first must change nothing.
  const sorted = fleets.toSorted((a, b) => byPrice(a.plan, b.plan));
  const measurerOf = ({ plan }: SizedFleet) => measurers.get(plan.profile)!;
  const allowed = sorted.filter(({ plan }) => isAllowed(plan, allow));
  const mixed = await mixedFleets(measurerOf, allowed, traffic, mostEngines);
  options.onPlans?.(mixed.plans);
  const misses = await Promise.all(
    (allowed.length > 0 ? [] : notPlanned)
      .filter(({ tried }) => tried.length > 0)
      .map(async ({ profile, tried, tooFew }) => {
        const on = tooFew === undefined ? few : whole;
        return {
          profile,
          engines: tooFew ?? 1,
          ...(await measurers.get(profile)!.nearest(on, tried, tooFew)),
        };
      }),
  );
  const { arrivalMs, inputTokens, outputTokens } = trace;
  const seconds = arrivalMs[arrivalMs.length - 1] / 1000;
  const sum = (values: readonly number[] | Int32Array) => {
    let total = 0;
    for (const value of values) total += value;
    return total;
  };
  const effort = (of: 'simulations' | 'simulatedRequests') =>
    sum([...measurers.values()].map((measurer) => measurer[of]));
  return {
    slo,
    ...{ trace: trace.source, refused },
    requests: arrivalMs.length,
    requestsSimulated: whole.trace.arrivalMs.length,
    hours: seconds / 3600,
    requestsPerS: (arrivalMs.length - 1) / seconds,
    inputTokensPerS: sum(inputTokens) / seconds,
    outputTokensPerS: sum(outputTokens) / seconds,
    allow,
    ...rankPlans([...fleets.map(({ plan }) => plan), ...mixed.plans], allow),
    notPlanned: notPlanned.sort(compareNames),
    nearest: misses.sort((a, b) => a.timesLimit - b.timesLimit || compareNames(a, b)).at(0) ?? null,
    mixedFleetsTried: mixed.tried,
    mostEngines,
    simulations: effort('simulations'),
    simulatedRequests: effort('simulatedRequests'),
    wallS: (performance.now() - started) / 1000,
  };
}

/** Lets runs that were asked for last go first: a profile is planned to its end before all others are begun. */
function newestFirst(engine: JobEngine): JobEngine {
  const waiting: (() => void)[] = [];
  let running = 0;
  const leave = () => {
    const next = waiting.pop();
    if (next) next();
    else running--;
  };
  return {
    width: engine.width,
    share: (bytes) => engine.share(bytes),
    close: () => engine.close(),
    async run(jobs, options) {
      if (running < engine.width) running++;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      try {
        return await engine.run(jobs, options);
      } finally {
        // What its caller asks for next is then newer than what waits.
        setImmediate(leave);
      }
    },
  };
}

/** The best plan of each precision of a profile, or why there is none. */
async function plansOf(
  measurer: CandidateMeasurer,
  traffic: PlannedTraffic,
  { minQuality, mostEngines, allow }: PlanOptions,
): Promise<(SizedFleet | RefusedProfile)[]> {
  const { profile } = measurer;
  const alike = alikePrecisions(profile, precisionsOf(profile, minQuality), allow);
  const precisions = alike.map(([first]) => first);
  const candidates = precisions.flatMap((precision) => candidatesOf(profile, precision));
  // The defaults say where to look at the others.
  const defaults = precisions
    .map((precision) => candidates.find(({ weights }) => weights === precision))
    .filter((each) => each !== undefined);
  const first = await lookAt(measurer, traffic, defaults);
  const startOf = ({ weights }: Candidate) =>
    first.find(({ candidate }) => candidate.weights === weights)?.load ?? 0;
  const others = candidates.filter((candidate) => !defaults.includes(candidate));
  const whole = [...first, ...(await lookAt(measurer, traffic, others, startOf))];
  const withWeights = (precision: WeightPrecision, found: readonly SustainedLoad[]) =>
    found.filter(({ candidate }) => candidate.weights === precision);
  const divided = await lookAt(
    measurer,
    traffic,
    precisions.flatMap((precision) =>
      dividedOf(profile, precision, withWeights(precision, whole), mostEngines),
    ),
  );
  const results: (SizedFleet | RefusedProfile)[] = [];
  for (const precision of precisions) {
    const [, ...weightsAlike] = alike.find(([first]) => first === precision)!;
    const found = withWeights(precision, [...whole, ...divided]);
    const drafted = found.filter(({ candidate }) => candidate.speculationDepth > 0);
    const plain = found.filter((each) => !drafted.includes(each));
    const best = await bestPlan(measurer, traffic, plain, mostEngines);
    const isLeast = 'plan' in best && best.plan.engines === 1;
    const withDrafts =
      drafted.length === 0 || isLeast ? null : await bestPlan(measurer, traffic, drafted, mostEngines);
    const isCheaper =
      withDrafts !== null &&
      'plan' in withDrafts &&
      ('reason' in best || withDrafts.plan.usdPerHour < best.plan.usdPerHour);
    for (const each of isCheaper ? [best, withDrafts] : [best]) {
      if ('plan' in each) results.push({ ...each, plan: { ...each.plan, weightsAlike } });
      else results.push({ profile, precision, ...each });
    }
  }
  return results;
}

/** Precisions by what the profile says of them, of each group the one that is allowed first. */
function alikePrecisions(
  { weights }: EngineProfile,
  precisions: readonly WeightPrecision[],
  allow: readonly string[],
): WeightPrecision[][] {
  const groups: WeightPrecision[][] = [];
  const figures = (precision: WeightPrecision) => [weights[precision]!.law, weights[precision]!.weightGiB];
  for (const precision of precisions) {
    const group = groups.find(([first]) => isDeepStrictEqual(figures(first), figures(precision)));
    if (group === undefined) groups.push([precision]);
    else group.push(precision);
  }
  const isNamed = (precision: WeightPrecision) => Number(allow.includes(precision.toLowerCase()));
  return groups.map((group) =>
    group.sort((a, b) => isNamed(b) - isNamed(a) || weights[b]!.quality - weights[a]!.quality),
  );
}

/** The plan with the best of settings of one precision, or why there is none. */
async function bestPlan(
  measurer: CandidateMeasurer,
  traffic: PlannedTraffic,
  found: readonly SustainedLoad[],
  mostEngines: number,
): Promise<SizedFleet | Omit<RefusedProfile, 'profile' | 'precision'>> {
  if (found.length === 0) return { reason: 'the model does not fit', tried: [] };
  const kept = found
    .filter(({ load }) => load > 0)
    .sort(byEngines)
    .slice(0, KEPT)
    .map(({ candidate, load }) => ({ candidate, search: { guess: load, step: 1.25, tolerance: 1.12 } }));
  const [best] = (await measurer.sustained(traffic.search, kept)).sort(byEngines);
  if (best === undefined || best.load === 0) return { reason: 'no settings meet the SLO', tried: found };
  const engine = await measureEngine(measurer, traffic, { candidate: best.candidate, guess: best.load });
  if (engine.sustained === 0)
    return {
      reason: 'the settings found do not meet the SLO on traffic they were not chosen on',
      tried: [best],
    };
  const plan = await sizeFleet(measurer, traffic, engine, mostEngines);
  if (plan !== null) return { plan, engine };
  const tooFew = wholeGroups(best.candidate, mostEngines) || undefined;
  return { reason: `more than ${mostEngines} engines are needed`, tried: [best], tooFew };
}

/** Order of candidates: fewest engines expected to serve the traffic, then the largest load that an engine sustains. */
function byEngines(a: SustainedLoad, b: SustainedLoad): number {
  return enginesFor(a) - enginesFor(b) || b.load - a.load;
}

function enginesFor({ candidate, load }: SustainedLoad): number {
  const fewest = fewestEngines(candidate);
  return load === 0 ? Number.MAX_SAFE_INTEGER : fewest * Math.ceil(1 / load / fewest);
}

/**
 * Rough loads that candidates sustain, on a few stretches of the traffic.
 *
 * @param startOf load to look at first; nobody who does not sustain half of it is looked at closely. 0: not known.
 */
function lookAt(
  measurer: CandidateMeasurer,
  { few }: PlannedTraffic,
  candidates: readonly Candidate[],
  startOf: (candidate: Candidate) => number = () => 0,
): Promise<SustainedLoad[]> {
  const looks = candidates.map((candidate) => {
    const start = startOf(candidate);
    const from = start === 0 ? { guess: 1, step: 2 } : { guess: start, step: 1.4, floor: FLOOR * start };
    return { candidate, search: { ...from, tolerance: 1.5 } };
  });
  return measurer.sustained(few, looks);
}

function candidatesOf(profile: EngineProfile, weights: WeightPrecision): Candidate[] {
  const defaults = { ...vllmDefaults(profile), weights };
  const drafts = profile.speculation === null ? [0] : DRAFTS;
  const grid = [...SEQUENCES, defaults.maxNumSeqs].flatMap((maxNumSeqs) =>
    [...TOKENS, defaults.maxNumBatchedTokens].flatMap((maxNumBatchedTokens) =>
      drafts.map((speculationDepth) => ({ ...defaults, maxNumSeqs, maxNumBatchedTokens, speculationDepth })),
    ),
  );
  const different = new Map([defaults, ...grid].map((each) => [candidateKey(each), each]));
  return [...different.values()].filter((each) => isPossible(profile, each));
}

/** Load of one engine from which on it is enough alone. */
const ALONE = 1.1;

/** Prefill apart from decode, in groups that may be as few engines as those that do both. */
function dividedOf(
  profile: EngineProfile,
  weights: WeightPrecision,
  found: readonly SustainedLoad[],
  mostEngines: number,
): Candidate[] {
  const load = Math.max(0, ...found.map((each) => each.load));
  const needed = load === 0 ? mostEngines : Math.min(mostEngines, Math.ceil(ALONE / load));
  return SPLITS.map((split) => ({ ...vllmDefaults(profile), weights, split })).filter(
    (each) => fewestEngines(each) <= needed && isPossible(profile, each),
  );
}

/** The plans, cheapest first, those that assume what was not allowed apart; marked where no cheaper one has a lower TTFT p99. */
export function rankPlans(
  plans: readonly FleetPlan[],
  allow: readonly string[],
): Pick<PlanResult, 'plans' | 'riskier'> {
  const ranked = (some: readonly FleetPlan[]) => {
    let least = Number.POSITIVE_INFINITY;
    return some.toSorted(byPrice).map((plan) => {
      const onFront = plan.ttftP99Ms < least;
      least = Math.min(least, plan.ttftP99Ms);
      return { ...plan, onFront };
    });
  };
  const { plans: safe = [], riskier = [] } = Object.groupBy(plans, (plan) =>
    isAllowed(plan, allow) ? 'plans' : 'riskier',
  );
  return { plans: ranked(safe), riskier: ranked(riskier) };
}

function isAllowed({ assumes }: Pick<FleetPlan, 'assumes'>, allow: readonly string[]): boolean {
  return assumes.every((each) => allow.includes(each));
}

/** Cheapest first; of equal price those that are better known, then those with more headroom. */
function byPrice(a: FleetPlan, b: FleetPlan): number {
  return (
    a.usdPerHour - b.usdPerHour ||
    LEVELS.indexOf(a.confidence.level) - LEVELS.indexOf(b.confidence.level) ||
    b.headroom - a.headroom ||
    compareNames(a, b)
  );
}

function compareNames(a: Pick<PlanPool, 'profile'>, b: Pick<PlanPool, 'profile'>): number {
  return a.profile.name < b.profile.name ? -1 : a.profile.name > b.profile.name ? 1 : 0;
}
