import type { JobEngine } from '@servegym/jobs';
import { type EngineProfile, type Trace, WEIGHT_PRECISIONS, type WeightPrecision } from '@servegym/simulator';
import { blockResamples, percentileInterval } from '@servegym/simulator/statistics';
import { type Candidate, candidateKey, isPossible, vllmDefaults } from '../tune/candidate.ts';
import { goodShare, type LoadPoint, sloUse } from '../tune/load-point.ts';
import { CandidateMeasurer } from '../tune/measure-candidates.ts';
import { HELD_OUT_SEED } from '../tune/search.ts';
import { servingCommands } from '../tune/serving-command.ts';
import { type SloTerm, sloTermText } from '../tune/slo.ts';
import { sustainedLoad, sustainedRate } from '../tune/sustained-load.ts';
import { joinTraffic, requestRate, type SplitTraffic, someBlocks } from '../tune/traffic.ts';
import { deployment } from '../tune/tune.ts';
import { autoscaledEngines } from './autoscaled-engines.ts';
import { leastEngineSeconds, type TraceWork, traceWork } from './least-time.ts';
import { newestFirst } from './newest-first.ts';
import type { FleetPlan, PlanConfidence, PlanResult, RefusedProfile } from './plan-result.ts';
import { profileError } from './profile-error.ts';

export interface PlanOptions {
  readonly slo: readonly SloTerm[];
  /** Least accuracy of the weights, relative to FP16. */
  readonly minQuality: number;
  readonly mostEngines: number;
  readonly seed: number;
  readonly onProgress?: (done: number, of: number) => void;
  /** Told of the plans of each profile, as it is done; which of them are on the front is not known yet. */
  readonly onPlans?: (plans: readonly FleetPlan[]) => void;
}

/** Blocks of the traffic for the first look at the settings. */
const FIRST_BLOCKS = 4;
/** Settings of each precision that are looked at closely. */
const KEPT = 2;
/** Loads around the sustained one at which the best settings are measured. */
const GRID = [0.8, 0.92, 1.06, 1.2];
const SURGE = 1.5;

/** Settings that are tried with each precision. `tune` searches the whole space of one profile. */
const SEQUENCES = [32, 64, 128, 256];
const TOKENS = [2048, 8192];
const DRAFTS = [0, 3];

/** The trace that is planned for, and its work, which every profile has. */
interface WholeTrace {
  readonly trace: Trace;
  readonly work: TraceWork;
}

/** For every profile and precision: the best settings, the engines that the whole traffic takes, and what they cost. */
export async function planFleet(
  jobs: JobEngine,
  profiles: readonly EngineProfile[],
  { trace, split }: { readonly trace: Trace; readonly split: SplitTraffic },
  options: PlanOptions,
): Promise<PlanResult> {
  const started = performance.now();
  const { slo, onProgress = () => undefined } = options;
  const whole = { trace, work: traceWork(trace) };
  const engine = newestFirst(jobs);
  const plans: FleetPlan[] = [];
  const refused: RefusedProfile[] = [];
  let done = 0;
  let simulations = 0;
  let simulatedRequests = 0;
  await Promise.all(
    profiles.map(async (profile) => {
      const measurer = new CandidateMeasurer(engine, profile, slo);
      const found = await plansOf(measurer, profile, whole, split, options);
      const own = found.filter((each): each is FleetPlan => !('reason' in each));
      plans.push(...own);
      refused.push(...found.filter((each): each is RefusedProfile => 'reason' in each));
      options.onPlans?.(own);
      simulations += measurer.simulations;
      simulatedRequests += measurer.simulatedRequests;
      onProgress(++done, profiles.length);
    }),
  );
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
    plans: rankPlans(plans),
    refused: refused.sort(compareNames),
    mostEngines: options.mostEngines,
    ...{ simulations, simulatedRequests },
    wallS: (performance.now() - started) / 1000,
  };
}

async function plansOf(
  measurer: CandidateMeasurer,
  profile: EngineProfile,
  whole: WholeTrace,
  split: SplitTraffic,
  options: PlanOptions,
): Promise<(FleetPlan | RefusedProfile)[]> {
  const { slo, minQuality, seed } = options;
  const refuse = (precision: string, reason: string): RefusedProfile => ({ profile, precision, reason });
  const precisions = WEIGHT_PRECISIONS.filter(
    (precision) => (profile.weights[precision]?.quality ?? Number.NaN) >= minQuality,
  );
  const tried = precisions.map((precision) => ({
    precision,
    candidates: candidatesOf(profile, precision, options.mostEngines),
  }));
  const rough = await measurer.measure(
    someBlocks(split.search, FIRST_BLOCKS),
    tried.flatMap(({ candidates }) =>
      candidates.map((candidate) => ({ candidate, search: { guess: 1, step: 2, tolerance: 1.25 } })),
    ),
    { seed },
  );
  const results: (FleetPlan | RefusedProfile)[] = [];
  let at = 0;
  for (const { precision, candidates } of tried) {
    const own = candidates.map((candidate) => ({ candidate, load: sustainedLoad(rough[at++], slo) }));
    const kept = own
      .filter(({ load }) => load > 0)
      .sort((a, b) => b.load - a.load)
      .slice(0, KEPT);
    if (kept.length === 0) {
      results.push(
        refuse(precision, candidates.length === 0 ? 'the model does not fit' : 'no settings meet the SLO'),
      );
      continue;
    }
    const close = await measurer.measure(
      split.search,
      kept.map(({ candidate, load }) => ({
        candidate,
        search: { guess: load, step: 1.25, tolerance: 1.06 },
      })),
      { seed },
    );
    const [best] = kept
      .map(({ candidate }, i) => ({ candidate, load: sustainedLoad(close[i], slo) }))
      .sort((a, b) => b.load - a.load);
    results.push(
      best.load === 0
        ? refuse(precision, 'no settings meet the SLO')
        : await planOf(measurer, profile, whole, split, best, options),
    );
  }
  return results;
}

function candidatesOf(profile: EngineProfile, weights: WeightPrecision, mostEngines: number): Candidate[] {
  const defaults = { ...vllmDefaults(profile), weights };
  const drafts = profile.speculation === null ? [0] : DRAFTS;
  const grid = [...SEQUENCES, defaults.maxNumSeqs].flatMap((maxNumSeqs) =>
    [...TOKENS, defaults.maxNumBatchedTokens].flatMap((maxNumBatchedTokens) =>
      drafts.map((speculationDepth) => ({ ...defaults, maxNumSeqs, maxNumBatchedTokens, speculationDepth })),
    ),
  );
  const pairs = mostEngines > 1 ? [{ ...defaults, split: true }] : [];
  const different = new Map([...grid, ...pairs].map((each) => [candidateKey(each), each]));
  return [...different.values()].filter((each) => isPossible(profile, each));
}

async function planOf(
  measurer: CandidateMeasurer,
  profile: EngineProfile,
  { trace, work }: WholeTrace,
  { search, heldOut }: SplitTraffic,
  { candidate, load: searchedLoad }: { readonly candidate: Candidate; readonly load: number },
  { slo, mostEngines, seed }: PlanOptions,
): Promise<FleetPlan | RefusedProfile> {
  const [unseen] = await measurer.measure(
    heldOut,
    [{ candidate, search: { guess: searchedLoad, step: 1.2, tolerance: 1.05 } }],
    { seed: seed + HELD_OUT_SEED },
  );
  const load = sustainedLoad(unseen, slo);
  const [around] = await measurer.measure(
    heldOut,
    [{ candidate, loads: load === 0 ? [] : GRID.map((step) => step * load) }],
    { seed: seed + HELD_OUT_SEED },
  );
  const points = [...unseen, ...around].sort((a, b) => a.load - b.load);
  const sustained = sustainedRate(points, heldOut, slo);
  const precision = candidate.weights;
  if (sustained === 0) {
    return {
      profile,
      precision,
      reason: 'the settings found do not meet the SLO on traffic they were not chosen on',
    };
  }
  const whole = joinTraffic([search, heldOut]);
  const rate = requestRate(whole);
  const winner = { candidate, searchedLoad, heldOut: { value: sustained } };
  const { replicas, usdPerHour, point } = await deployment(measurer, profile, whole, winner, 1, {
    ...{ slo, seed, replicas: [1, mostEngines] as const },
  });
  if (replicas === null || usdPerHour === null || point === null) {
    return { profile, precision, reason: `more than ${mostEngines} engines are needed` };
  }
  const [[strained]] = await measurer.measure(whole, [{ candidate, loads: [SURGE] }], { seed, replicas });
  const draws = blockResamples(heldOut.blockStarts.length - 1, seed + HELD_OUT_SEED).map((weights) =>
    sustainedRate(points, heldOut, slo, weights),
  );
  const engineUsd = profile.gpu.count * profile.gpu.usdPerHour;
  const hours = trace.arrivalMs[trace.arrivalMs.length - 1] / 3.6e6;
  const scaled = autoscaledEngines(trace, sustained, {
    most: replicas,
    outputWeight: outputWeight(profile, precision),
  });
  const tokens = (values: Int32Array) => values.reduce((sum, value) => sum + value, 0) / hours / 1e6;
  return {
    ...{ profile, settings: candidate, engines: replicas, gpus: replicas * profile.gpu.count, usdPerHour },
    autoscaledEngines: scaled,
    autoscaledUsdPerHour: scaled * engineUsd,
    lowerBoundUsdPerHour: (leastEngineSeconds(profile, precision, work) / 3600 / hours) * engineUsd,
    usdPerMillionInputTokens: usdPerHour / tokens(trace.inputTokens),
    usdPerMillionOutputTokens: usdPerHour / tokens(trace.outputTokens),
    ...{ sustained, ttftP99Ms: point.ttftP99Ms, tpotP99Ms: point.tpotP99Ms },
    headroom: (replicas * sustained) / rate,
    goodAtSurge: goodShare(strained),
    breaksFirst: firstExceeded(points, slo),
    quality: profile.weights[precision]!.quality,
    confidence: confidenceOf(profile, precision, { draws, rate, engineUsd, engines: replicas, sustained }),
    onFront: false,
    commands: servingCommands(profile, candidate, replicas),
  };
}

/** Time of an output token over that of a prompt token, when many are in a batch. */
function outputWeight(profile: EngineProfile, precision: WeightPrecision): number {
  const { perTokenUs, perDecodeSequenceUs, perContextTokenNs } = profile.weights[precision]!.law;
  return (perTokenUs + perDecodeSequenceUs + perContextTokenNs) / perTokenUs;
}

/** The bound with the largest share used at the least load at which the SLO is exceeded. */
function firstExceeded(points: readonly LoadPoint[], slo: readonly SloTerm[]): string | null {
  const beyond = points.find((point) => sloUse(point, slo) > 1);
  if (beyond === undefined) return null;
  const uses = slo.map((term, t) =>
    sloUse({ ...beyond, excess: [beyond.excess[t]], classRequests: [beyond.classRequests[t]] }, [term]),
  );
  return sloTermText(slo[uses.indexOf(Math.max(...uses))]);
}

function confidenceOf(
  profile: EngineProfile,
  precision: WeightPrecision,
  figures: {
    readonly draws: readonly number[];
    readonly rate: number;
    readonly engineUsd: number;
    readonly engines: number;
    readonly sustained: number;
  },
): PlanConfidence {
  const { draws, rate, engineUsd, engines, sustained } = figures;
  const { status } = profile.weights[precision]!;
  const { share, source } = profileError(profile, precision);
  const drawn = percentileInterval(draws);
  const interval = { low: drawn.low * (1 - share), high: drawn.high * (1 + share) };
  // Engines are whole: as many as would do if they were not, of at most one fewer.
  const continuous = Math.min(engines, Math.max(engines - 1, rate / sustained));
  const enginesAt = (rps: number) => Math.max(1, Math.ceil((continuous * sustained) / rps));
  const ends = {
    low: Math.min(engines, enginesAt(interval.high)),
    high: Math.max(engines, enginesAt(interval.low)),
  };
  return {
    level: status === 'measured' ? 'high' : status === 'tables' ? 'medium' : 'low',
    profileError: share,
    profileErrorSource: source,
    sustained: interval,
    engines: ends,
    usdPerHour: { low: ends.low * engineUsd, high: ends.high * engineUsd },
  };
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

const LEVELS = ['high', 'medium', 'low'];

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
