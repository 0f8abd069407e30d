import { boardWatts } from '@servegym/profiles';
import type { EngineProfile, RouterPolicy, Trace, WeightPrecision } from '@servegym/simulator';
import { blockResamples, percentileInterval } from '@servegym/simulator/statistics';
import { poolCommands } from '../deployment/serving-command.ts';
import { type Candidate, fewestEngines, splitParts } from '../tune/candidate.ts';
import { goodShare, type LoadPoint, type SecondEngines, sloUse } from '../tune/load-point.ts';
import type { CandidateMeasurer } from '../tune/measure-candidates.ts';
import { HELD_OUT_SEED } from '../tune/search.ts';
import { type SloTerm, sloTermText } from '../tune/slo.ts';
import { sustainedLoad, sustainedRate } from '../tune/sustained-load.ts';
import { requestRate, type SplitTraffic, type Traffic } from '../tune/traffic.ts';
import { deployment } from '../tune/tune.ts';
import { autoscaledEngines } from './autoscaled-engines.ts';
import { leastUsd, type TraceWork } from './least-time.ts';
import type { FleetPlan, PlanConfidence, PlanPool } from './plan-result.ts';
import { profileError } from './profile-error.ts';

/** Loads around the sustained one at which the best settings are measured. */
const GRID = [0.8, 0.92, 1.06, 1.2];
export const SURGE = 1.5;

/** The trace that is planned for, its work, which every profile has, and the part of it that is simulated. */
export interface PlannedTraffic extends SplitTraffic {
  readonly trace: Trace;
  readonly work: TraceWork;
  /** Both parts. */
  readonly whole: Traffic;
}

export interface SizingOptions {
  readonly slo: readonly SloTerm[];
  readonly mostEngines: number;
  readonly seed: number;
}

/** Load that one engine sustains on traffic that the search has not seen. */
export interface EngineLoad {
  readonly points: readonly LoadPoint[];
  /** Requests/s. */
  readonly sustained: number;
  /** The same on each resample of the blocks. */
  readonly draws: readonly number[];
}

/** A plan with what one engine of it sustains. */
export interface SizedFleet {
  readonly plan: FleetPlan;
  readonly load: EngineLoad;
}

/** @param guess load to look at first, times the rate of the traffic */
export async function measureEngine(
  measurer: CandidateMeasurer,
  { heldOut }: PlannedTraffic,
  { candidate, guess }: { readonly candidate: Candidate; readonly guess: number },
  { slo, seed: searched }: SizingOptions,
  second?: SecondEngines,
): Promise<EngineLoad> {
  const seed = searched + HELD_OUT_SEED;
  const [unseen] = await measurer.measure(
    heldOut,
    [{ candidate, search: { guess, step: 1.2, tolerance: 1.05 } }],
    { seed, second },
  );
  const load = sustainedLoad(unseen, slo);
  const [around] = await measurer.measure(
    heldOut,
    [{ candidate, loads: load === 0 ? [] : GRID.map((step) => step * load) }],
    { seed, second },
  );
  const points = [...unseen, ...around].sort((a, b) => a.load - b.load);
  return {
    points,
    sustained: sustainedRate(points, heldOut, slo),
    draws: blockResamples(heldOut.blockStarts.length - 1, seed).map((weights) =>
      sustainedRate(points, heldOut, slo, weights),
    ),
  };
}

/** The fewest engines with which the whole traffic meets the SLO, and the better of the routers; `null` when too many. */
export async function sizeFleet(
  measurer: CandidateMeasurer,
  profile: EngineProfile,
  traffic: PlannedTraffic,
  { candidate, guess, load }: { candidate: Candidate; guess: number; load: EngineLoad },
  options: SizingOptions,
  second?: SecondEngines,
): Promise<FleetPlan | null> {
  const { slo, seed, mostEngines } = options;
  const { whole } = traffic;
  const winner = { candidate, searchedLoad: guess, heldOut: { value: load.sustained } };
  const size = async (router: RouterPolicy, [fewest, most]: readonly [number, number]) => {
    const { replicas, point } = await deployment(measurer, profile, whole, winner, 1, {
      ...{ slo, seed, replicas: [fewest, most] as const, router, second },
    });
    return replicas === null || point === null ? null : { replicas, point, router };
  };
  const routes = whole.trace.prefixBlocks !== undefined && candidate.prefixCaching;
  let best = routes ? await size('prefix_aware', [1, mostEngines]) : null;
  if (best === null) best = await size('least_loaded', [1, mostEngines]);
  else {
    // Which of as many engines has a prefix matters where there are several.
    const { replicas } = best;
    const plain = await size('least_loaded', [replicas, replicas]);
    const entries = poolsOf(profile, candidate, replicas, second)[0].engines;
    if (plain !== null && (entries === 1 || plain.point.ttftP99Ms < best.point.ttftP99Ms)) best = plain;
  }
  if (best === null) return null;
  const { replicas, router, point } = best;
  const [[strained]] = await measurer.measure(whole, [{ candidate, loads: [SURGE] }], {
    ...{ seed, replicas, router, second },
  });
  const pools = poolsOf(profile, candidate, replicas, second);
  const { usdPerHour } = costOf(pools);
  const scaled = autoscaledEngines(traffic.trace, load.sustained, {
    ...{ most: replicas, fewest: fewestEngines(candidate) },
    outputWeight: outputWeight(profile, candidate.weights),
  });
  return fleetPlan(traffic, slo, {
    ...{ pools, router, secondWeight: 1, load, point, strained },
    autoscaled: { engines: scaled, usdPerHour: (scaled / replicas) * usdPerHour },
  });
}

/** Engines of each kind, of so many in all. */
function poolsOf(
  profile: EngineProfile,
  settings: Candidate,
  engines: number,
  second: SecondEngines | undefined,
): PlanPool[] {
  if (settings.split === false) return [{ role: 'all', profile, settings, engines }];
  const { prefill, decode } = splitParts(settings.split);
  const groups = engines / (prefill + decode);
  return [
    { role: 'prefill', profile, settings, engines: groups * prefill },
    {
      role: 'decode',
      profile: second?.profile ?? profile,
      settings: second?.candidate ?? settings,
      engines: groups * decode,
    },
  ];
}

function costOf(pools: readonly PlanPool[]) {
  let usdPerHour = 0;
  let gpus = 0;
  let total = 0;
  let mostKw: number | null = 0;
  for (const { profile, engines } of pools) {
    gpus += engines * profile.gpu.count;
    const watts = boardWatts(profile.gpu.name);
    mostKw = mostKw === null || watts === null ? null : mostKw + (engines * profile.gpu.count * watts) / 1000;
    usdPerHour += engines * engineUsd(profile);
    total += engines;
  }
  return { usdPerHour, gpus, engines: total, mostKw };
}

/** USD an hour of an engine. */
export function engineUsd({ gpu }: EngineProfile): number {
  return gpu.count * gpu.usdPerHour;
}

/** Figures of engines that meet the SLO. */
export function fleetPlan(
  { trace, work, whole }: PlannedTraffic,
  slo: readonly SloTerm[],
  sized: {
    readonly pools: readonly PlanPool[];
    readonly router: RouterPolicy;
    readonly secondWeight: number;
    /** Of one engine, on average. */
    readonly load: EngineLoad;
    readonly point: LoadPoint;
    readonly strained: LoadPoint;
    readonly autoscaled: { readonly engines: number; readonly usdPerHour: number };
  },
): FleetPlan {
  const { pools, router, secondWeight, load, point, strained, autoscaled } = sized;
  const { usdPerHour, gpus, engines, mostKw } = costOf(pools);
  const hours = trace.arrivalMs[trace.arrivalMs.length - 1] / 3.6e6;
  const tokens = (values: Int32Array) => values.reduce((sum, value) => sum + value, 0) / hours / 1e6;
  const priced = pools.map(({ profile, settings }) => ({
    ...{ profile, precision: settings.weights, usdPerHour: engineUsd(profile) },
  }));
  const rate = requestRate(whole);
  return {
    ...{ profile: pools[0].profile, settings: pools[0].settings, pools, router, secondWeight },
    ...{ engines, gpus, usdPerHour, mostKw },
    autoscaledEngines: autoscaled.engines,
    autoscaledUsdPerHour: autoscaled.usdPerHour,
    lowerBoundUsdPerHour: leastUsd(priced, work) / hours,
    usdPerMillionInputTokens: usdPerHour / tokens(trace.inputTokens),
    usdPerMillionOutputTokens: usdPerHour / tokens(trace.outputTokens),
    ...{ sustained: load.sustained, ttftP99Ms: point.ttftP99Ms, tpotP99Ms: point.tpotP99Ms },
    headroom: (engines * load.sustained) / rate,
    goodAtSurge: goodShare(strained),
    breaksFirst: firstExceeded(load.points, slo),
    quality: Math.min(...pools.map(({ profile, settings }) => profile.weights[settings.weights]!.quality)),
    confidence: confidenceOf(pools, load, { rate, usdPerHour, engines }),
    onFront: false,
    commands: poolCommands(pools, router, secondWeight),
  };
}

/** Time of an output token over that of a prompt token, when many are in a batch. */
export function outputWeight(profile: EngineProfile, precision: WeightPrecision): number {
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

export const LEVELS = ['high', 'medium', 'low'] as const;
const LEVEL_OF = { measured: 'high', tables: 'medium', estimated: 'low' } as const;

/** Confidence in the pool that is known worst. */
function confidenceOf(
  pools: readonly PlanPool[],
  { draws, sustained }: EngineLoad,
  {
    rate,
    usdPerHour,
    engines,
  }: { readonly rate: number; readonly usdPerHour: number; readonly engines: number },
): PlanConfidence {
  const [{ share, source }] = pools
    .map(({ profile, settings }) => profileError(profile, settings.weights))
    .sort((a, b) => b.share - a.share);
  const levels = pools.map(({ profile, settings }) =>
    LEVELS.indexOf(LEVEL_OF[profile.weights[settings.weights]!.status]),
  );
  const drawn = percentileInterval(draws);
  const interval = { low: drawn.low * (1 - share), high: drawn.high * (1 + share) };
  // Engines come in whole groups: as many as would do if they did not, of at most one group fewer.
  const group = fewestEngines(pools[0].settings);
  const continuous = Math.min(engines, Math.max(engines - group, rate / sustained));
  const enginesAt = (rps: number) => group * Math.max(1, Math.ceil((continuous * sustained) / rps / group));
  const ends = {
    low: Math.min(engines, enginesAt(interval.high)),
    high: Math.max(engines, enginesAt(interval.low)),
  };
  const usd = usdPerHour / engines;
  return {
    level: LEVELS[Math.max(...levels)],
    profileError: share,
    profileErrorSource: source,
    sustained: interval,
    engines: ends,
    usdPerHour: { low: ends.low * usd, high: ends.high * usd },
  };
}
