import { boardWatts } from '@servegym/profiles';
import type { EngineProfile, Trace } from '@servegym/simulator';
import { percentileInterval } from '@servegym/simulator/statistics';
import { servingCommands } from '../deployment/serving-command.ts';
import { basisOf } from '../report/result.ts';
import { type Candidate, engineUsd, fewestEngines, splitParts } from '../search/candidate.ts';
import {
  type CloseLoad,
  type EngineChoice,
  type Evaluator,
  fewestThatHold,
  SURGE,
} from '../search/evaluator.ts';
import { goodShare, type LoadPoint, sloUse } from '../search/load-point.ts';
import { profileError, widened } from '../search/profile-error.ts';
import type { RouterChoice } from '../search/search-space.ts';
import { type SloTerm, sloTermText } from '../search/slo.ts';
import { autoscaledEngines, leastEngineSeconds, type TraceWork } from '../search/trace-cost.ts';
import { requestRate, type SplitTraffic, type Traffic } from '../search/traffic.ts';
import type { FleetPlan, PlanConfidence, PlanPool } from './plan-result.ts';

/** Loads around the sustained one at which the best settings are measured. */
const STEPS = [0.8, 0.92, 1.06, 1.2];

/** The trace that is planned for, its work, which every profile has, and the part of it that is simulated. */
export interface PlannedTraffic extends SplitTraffic {
  readonly trace: Trace;
  readonly work: TraceWork;
  /** Both parts. */
  readonly whole: Traffic;
  /** Routers that are tried; those that know prefixes only where the traffic has them. */
  readonly routers: readonly RouterChoice[];
  /** A few stretches of the part to search on, for a first look. */
  readonly few: Traffic;
}

/** What one engine sustains on the held-out traffic. @param guess load to look at first, times the rate of the traffic */
export async function measureEngine(
  evaluator: Evaluator,
  { heldOut }: PlannedTraffic,
  { profile, candidate }: EngineChoice,
  guess: number,
): Promise<CloseLoad> {
  const search = { guess, step: 1.2, tolerance: 1.05 };
  const how = { steps: STEPS, seed: evaluator.heldOutSeed };
  const [engine] = await evaluator.closely(heldOut, [{ profile, candidate, search }], how);
  return engine;
}

/** The fewest engines with which the whole traffic meets the SLO, and the best of the routers; `null` when too many. */
export async function sizeFleet(
  evaluator: Evaluator,
  traffic: PlannedTraffic,
  engine: CloseLoad,
  mostEngines: number,
): Promise<FleetPlan | null> {
  const { profile, candidate } = engine;
  const { whole } = traffic;
  const knowsPrefixes = whole.trace.prefixBlocks !== undefined && candidate.prefixCaching;
  const routers = traffic.routers.filter(
    (each) => knowsPrefixes || each === 'least_loaded' || each === 'round_robin',
  );
  const { replicas, router, point } = await fewestThatHold(evaluator, whole, engine, 1, [1, mostEngines], {
    routers: routers.length > 0 ? routers : undefined,
  });
  if (replicas === null || point === null) return null;
  const pools = poolsOf(profile, candidate, replicas);
  const { perTokenUs, perDecodeSequenceUs, perContextTokenNs } = profile.weights[candidate.weights]!.law;
  const scaled = autoscaledEngines(traffic.trace, engine.sustained, {
    ...{ most: replicas, fewest: fewestEngines(candidate) },
    // Time of an output token over that of a prompt token, when many are in a batch.
    outputWeight: (perTokenUs + perDecodeSequenceUs + perContextTokenNs) / perTokenUs,
  });
  const strained = await evaluator.at(whole, { profile, candidate }, SURGE, { replicas, router });
  const gpus = replicas * profile.gpu.count;
  const watts = boardWatts(profile.gpu.name);
  const mostKw = watts === null ? null : (gpus * watts) / 1000;
  const usdPerHour = replicas * engineUsd(profile);
  const { trace, work } = traffic;
  const hours = trace.arrivalMs[trace.arrivalMs.length - 1] / 3.6e6;
  const tokens = (values: Int32Array) => values.reduce((sum, value) => sum + value, 0) / hours / 1e6;
  const leastS = leastEngineSeconds(profile, { weights: candidate.weights }, work);
  const rate = requestRate(whole);
  const usdPerMillionOutputTokens = usdPerHour / tokens(trace.outputTokens);
  return {
    ...{ profile, settings: candidate, pools, router, engines: replicas, gpus, usdPerHour },
    kwhPerHourAtMost: mostKw,
    kwhPerMillionOutputTokensAtMost:
      mostKw === null ? null : (mostKw * usdPerMillionOutputTokens) / usdPerHour,
    autoscaledEngines: scaled,
    autoscaledUsdPerHour: (scaled / replicas) * usdPerHour,
    lowerBoundUsdPerHour: ((leastS / 3600) * engineUsd(profile)) / hours,
    usdPerMillionInputTokens: usdPerHour / tokens(trace.inputTokens),
    usdPerMillionOutputTokens,
    ...{ sustainedRps: engine.sustained, ttftP99Ms: point.ttftP99Ms, tpotP99Ms: point.tpotP99Ms },
    headroom: (replicas * engine.sustained) / rate,
    good_at_1_5_times: goodShare(strained),
    breaksFirst: firstExceeded(engine.points, evaluator.slo),
    quality: profile.weights[candidate.weights]!.quality,
    confidence: confidenceOf(pools[0], engine, replicas, rate),
    ...basisOf(pools[0].profile, pools[0].settings),
    ...{ weightsAlike: [], onFront: false },
    commands: servingCommands(profile, candidate, replicas, { router }),
  };
}

function poolsOf(profile: EngineProfile, settings: Candidate, engines: number): PlanPool[] {
  if (settings.split === false) return [{ role: 'all', profile, settings, engines }];
  const { prefill, decode } = splitParts(settings.split);
  const groups = engines / (prefill + decode);
  return [
    { role: 'prefill', profile, settings, engines: groups * prefill },
    { role: 'decode', profile, settings, engines: groups * decode },
  ];
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

export const LEVELS = ['high', 'medium', 'low'] as const;
const LEVEL_OF = { measured: 'high', tables: 'medium', estimated: 'low', assumed: 'low' } as const;

function confidenceOf(
  { profile, settings }: PlanPool,
  { draws, sustained }: Pick<CloseLoad, 'draws' | 'sustained'>,
  engines: number,
  rate: number,
): PlanConfidence {
  const { share, source } = profileError(profile, settings.weights);
  const interval = widened(percentileInterval(draws), share);
  // Engines come in whole groups: as many as would do if they did not, of at most one group fewer.
  const group = fewestEngines(settings);
  const continuous = Math.min(engines, Math.max(engines - group, rate / sustained));
  const enginesAt = (rps: number) => group * Math.max(1, Math.ceil((continuous * sustained) / rps / group));
  const ends = {
    low: Math.min(engines, enginesAt(interval.high)),
    high: Math.max(engines, enginesAt(interval.low)),
  };
  const usd = engineUsd(profile);
  return {
    level: LEVEL_OF[basisOf(profile, settings).restsOn],
    profileError: share,
    profileErrorSource: source,
    sustainedRps: interval,
    engines: ends,
    usdPerHour: { low: ends.low * usd, high: ends.high * usd },
  };
}
