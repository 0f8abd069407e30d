import type { JobEngine } from '@servegym/jobs';
import { type EngineProfile, type Trace, WEIGHT_PRECISIONS, type WeightPrecision } from '@servegym/simulator';
import {
  type Candidate,
  candidateKey,
  fewestEngines,
  isPossible,
  type SplitRatio,
  vllmDefaults,
} from '../tune/candidate.ts';
import { CandidateMeasurer } from '../tune/measure-candidates.ts';
import { sustainedLoad } from '../tune/sustained-load.ts';
import { joinTraffic, type SplitTraffic, someBlocks } from '../tune/traffic.ts';
import { traceWork } from './least-time.ts';
import { mixedFleets } from './mixed-fleets.ts';
import { newestFirst } from './newest-first.ts';
import type { FleetPlan, PlanResult, RefusedProfile } from './plan-result.ts';
import {
  LEVELS,
  measureEngine,
  type PlannedTraffic,
  type SizedFleet,
  type SizingOptions,
  sizeFleet,
} from './size-fleet.ts';

export interface PlanOptions extends SizingOptions {
  /** Least accuracy of the weights, relative to FP16. */
  readonly minQuality: number;
  readonly onProgress?: (done: number, of: number) => void;
  /** Told of the plans of each profile, as it is done; which of them are on the front is not known yet. */
  readonly onPlans?: (plans: readonly FleetPlan[]) => void;
}

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
  { trace, split }: { readonly trace: Trace; readonly split: SplitTraffic },
  options: PlanOptions,
): Promise<PlanResult> {
  const started = performance.now();
  const { slo, onProgress = () => undefined } = options;
  const whole = joinTraffic([split.search, split.heldOut]);
  const traffic: PlannedTraffic = { trace, work: traceWork(trace), whole, ...split };
  const engine = newestFirst(jobs);
  const fleets: SizedFleet[] = [];
  const refused: RefusedProfile[] = [];
  let done = 0;
  let simulations = 0;
  let simulatedRequests = 0;
  await Promise.all(
    profiles.map(async (profile) => {
      const measurer = new CandidateMeasurer(engine, profile, slo);
      const found = await plansOf(measurer, profile, traffic, options);
      const own = found.filter((each): each is SizedFleet => !('reason' in each));
      fleets.push(...own);
      refused.push(...found.filter((each): each is RefusedProfile => 'reason' in each));
      options.onPlans?.(own.map(({ plan }) => plan));
      simulations += measurer.simulations;
      simulatedRequests += measurer.simulatedRequests;
      onProgress(++done, profiles.length);
    }),
  );
  // Which profile is done first must change nothing.
  const mixed = await mixedFleets(
    engine,
    fleets.toSorted((a, b) => byPrice(a.plan, b.plan)),
    traffic,
    options,
  );
  options.onPlans?.(mixed.plans);
  const { arrivalMs, inputTokens, outputTokens } = trace;
  const seconds = arrivalMs[arrivalMs.length - 1] / 1000;
  const sum = (values: Int32Array) => values.reduce((total, value) => total + value, 0);
  return {
    slo,
    traffic: {
      source: trace.source,
      requests: arrivalMs.length,
      sampled: split.search.trace.arrivalMs.length + split.heldOut.trace.arrivalMs.length,
      hours: seconds / 3600,
      rate: (arrivalMs.length - 1) / seconds,
      inputTokensPerS: sum(inputTokens) / seconds,
      outputTokensPerS: sum(outputTokens) / seconds,
    },
    plans: rankPlans([...fleets.map(({ plan }) => plan), ...mixed.plans]),
    refused: refused.sort(compareNames),
    mixedTried: mixed.tried,
    mostEngines: options.mostEngines,
    simulations: simulations + mixed.simulations,
    simulatedRequests: simulatedRequests + mixed.simulatedRequests,
    wallS: (performance.now() - started) / 1000,
  };
}

async function plansOf(
  measurer: CandidateMeasurer,
  profile: EngineProfile,
  traffic: PlannedTraffic,
  options: PlanOptions,
): Promise<(SizedFleet | RefusedProfile)[]> {
  const { slo, minQuality, seed } = options;
  const refuse = (precision: string, reason: string): RefusedProfile => ({ profile, precision, reason });
  const precisions = WEIGHT_PRECISIONS.filter(
    (precision) => (profile.weights[precision]?.quality ?? Number.NaN) >= minQuality,
  );
  const candidates = precisions.flatMap((precision) => candidatesOf(profile, precision));
  // The defaults say where to look at the others.
  const first = await lookAt(
    measurer,
    traffic,
    precisions.map((precision) => candidates.find(({ weights }) => weights === precision)).filter(isThere),
    options,
  );
  const startOf = ({ weights }: Candidate) =>
    first.find(({ candidate }) => candidate.weights === weights)?.load ?? 0;
  const others = candidates.filter((candidate) => !first.some((each) => each.candidate === candidate));
  const whole = [...first, ...(await lookAt(measurer, traffic, others, options, startOf))];
  const withWeights = (precision: WeightPrecision, found: readonly EngineSustains[]) =>
    found.filter(({ candidate }) => candidate.weights === precision);
  const divided = await lookAt(
    measurer,
    traffic,
    precisions.flatMap((precision) =>
      dividedOf(profile, precision, withWeights(precision, whole), options.mostEngines),
    ),
    options,
  );
  const results: (SizedFleet | RefusedProfile)[] = [];
  for (const precision of precisions) {
    const own = withWeights(precision, [...whole, ...divided]);
    const kept = own
      .filter(({ load }) => load > 0)
      .sort(byEngines)
      .slice(0, KEPT);
    if (kept.length === 0) {
      results.push(
        refuse(precision, own.length === 0 ? 'the model does not fit' : 'no settings meet the SLO'),
      );
      continue;
    }
    const close = await measurer.measure(
      traffic.search,
      kept.map(({ candidate, load }) => ({
        candidate,
        search: { guess: load, step: 1.25, tolerance: 1.12 },
      })),
      { seed },
    );
    const [best] = kept
      .map(({ candidate }, i) => ({ candidate, load: sustainedLoad(close[i], slo) }))
      .sort(byEngines);
    if (best.load === 0) {
      results.push(refuse(precision, 'no settings meet the SLO'));
      continue;
    }
    const { candidate, load: guess } = best;
    const load = await measureEngine(measurer, traffic, { candidate, guess }, options);
    if (load.sustained === 0) {
      results.push(
        refuse(precision, 'the settings found do not meet the SLO on traffic they were not chosen on'),
      );
      continue;
    }
    const plan = await sizeFleet(measurer, profile, traffic, { candidate, guess, load }, options);
    results.push(
      plan === null
        ? refuse(precision, `more than ${options.mostEngines} engines are needed`)
        : { plan, load },
    );
  }
  return results;
}

interface EngineSustains {
  readonly candidate: Candidate;
  /** Load that an engine sustains, times the traffic. */
  readonly load: number;
}

/** Order of candidates: fewest engines expected to serve the traffic, then the largest load that an engine sustains. */
function byEngines(a: EngineSustains, b: EngineSustains): number {
  return enginesFor(a) - enginesFor(b) || b.load - a.load;
}

function enginesFor({ candidate, load }: EngineSustains): number {
  const fewest = fewestEngines(candidate);
  return load === 0 ? Number.MAX_SAFE_INTEGER : fewest * Math.ceil(1 / load / fewest);
}

function isThere<Item>(item: Item | undefined): item is Item {
  return item !== undefined;
}

/**
 * Rough loads that candidates sustain, on a few stretches of the traffic.
 *
 * @param startOf load to look at first; nobody who does not sustain half of it is looked at closely. 0: not known.
 */
async function lookAt(
  measurer: CandidateMeasurer,
  { search }: PlannedTraffic,
  candidates: readonly Candidate[],
  { slo, seed }: PlanOptions,
  startOf: (candidate: Candidate) => number = () => 0,
): Promise<EngineSustains[]> {
  const points = await measurer.measure(
    someBlocks(search, FIRST_BLOCKS),
    candidates.map((candidate) => {
      const start = startOf(candidate);
      const from = start === 0 ? { guess: 1, step: 2 } : { guess: start, step: 1.4, floor: FLOOR * start };
      return { candidate, search: { ...from, tolerance: 1.5 } };
    }),
    { seed },
  );
  return candidates.map((candidate, i) => ({ candidate, load: sustainedLoad(points[i], slo) }));
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
  found: readonly EngineSustains[],
  mostEngines: number,
): Candidate[] {
  const load = Math.max(0, ...found.map((each) => each.load));
  const needed = load === 0 ? mostEngines : Math.min(mostEngines, Math.ceil(ALONE / load));
  return SPLITS.map((split) => ({ ...vllmDefaults(profile), weights, split })).filter(
    (each) => fewestEngines(each) <= needed && isPossible(profile, each),
  );
}

/** The plans, cheapest first, with those marked that no cheaper one beats in TTFT p99. */
export function rankPlans(plans: readonly FleetPlan[]): FleetPlan[] {
  let least = Number.POSITIVE_INFINITY;
  return plans.toSorted(byPrice).map((plan) => {
    const onFront = plan.ttftP99Ms < least;
    least = Math.min(least, plan.ttftP99Ms);
    return { ...plan, onFront };
  });
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

function compareNames(
  a: { readonly profile: EngineProfile },
  b: { readonly profile: EngineProfile },
): number {
  return a.profile.name < b.profile.name ? -1 : a.profile.name > b.profile.name ? 1 : 0;
}
