import type { JobEngine } from '@servegym/jobs';
import { type Candidate, type SplitRatio, vllmDefaults } from '../tune/candidate.ts';
import { type SecondEngines, sloUse } from '../tune/load-point.ts';
import { CandidateMeasurer } from '../tune/measure-candidates.ts';
import { sustainedLoad } from '../tune/sustained-load.ts';
import { requestRate, someBlocks } from '../tune/traffic.ts';
import { autoscaledEngines } from './autoscaled-engines.ts';
import type { FleetPlan, PlanPool } from './plan-result.ts';
import {
  type EngineLoad,
  engineUsd,
  fleetPlan,
  measureEngine,
  outputWeight,
  type PlannedTraffic,
  type SizedFleet,
  type SizingOptions,
  SURGE,
  sizeFleet,
} from './size-fleet.ts';

/** GPUs that are mixed: those that serve the traffic for the least. */
const MOST_GPUS = 5;
/** Fleets of two kinds of GPU beside each other that are simulated, the cheapest first. */
const TRIES = 12;
/** Least load that they have to sustain together, over that of the traffic: many engines share bursts. */
const LEAST_SUSTAINED = 0.95;
const RATIOS: readonly SplitRatio[] = ['1:1', '1:2', '2:1'];
/** Divisions of prefill and decode over two GPUs that are sized. */
const KEPT = 2;
const FIRST_BLOCKS = 4;

export interface MixedFleets {
  readonly plans: readonly FleetPlan[];
  /** Fleets that were simulated. */
  readonly tried: number;
  readonly simulations: number;
  readonly simulatedRequests: number;
}

/**
 * The cheapest fleets of two kinds of GPU: one in which both serve whole requests, the cheaper kind for the base load, and
 * one in which one kind prefills and the other decodes.
 *
 * @param fleets of one profile each
 */
export async function mixedFleets(
  jobs: JobEngine,
  fleets: readonly SizedFleet[],
  traffic: PlannedTraffic,
  options: SizingOptions,
): Promise<MixedFleets> {
  const measurers = new Map<SizedFleet, CandidateMeasurer>();
  const measurerOf = (fleet: SizedFleet) => {
    const known = measurers.get(fleet) ?? new CandidateMeasurer(jobs, fleet.plan.profile, options.slo);
    measurers.set(fleet, known);
    return known;
  };
  const cheapest = cheapestOfEachGpu(fleets);
  const beside = await besideEachOther(measurerOf, cheapest, traffic, options);
  const divided = await dividedOver(measurerOf, cheapest, traffic, options);
  const used = [...measurers.values()];
  return {
    plans: [beside.plan, divided.plan].filter((plan) => plan !== null),
    tried: beside.tried + divided.tried,
    simulations: used.reduce((sum, { simulations }) => sum + simulations, 0),
    simulatedRequests: used.reduce((sum, { simulatedRequests }) => sum + simulatedRequests, 0),
  };
}

type MeasurerOf = (fleet: SizedFleet) => CandidateMeasurer;
interface Found {
  readonly plan: FleetPlan | null;
  readonly tried: number;
}

/** USD an hour for a request a second. */
function usdPerRate({ plan, load }: SizedFleet): number {
  return engineUsd(plan.profile) / load.sustained;
}

/** For each GPU, the fleet whose engines serve a request for the least; those that serve it for less first. */
function cheapestOfEachGpu(fleets: readonly SizedFleet[]): SizedFleet[] {
  const best = new Map<string, SizedFleet>();
  const whole = fleets.filter(({ plan }) => plan.pools.length === 1);
  for (const fleet of whole.sort((a, b) => usdPerRate(a) - usdPerRate(b))) {
    const { name } = fleet.plan.profile.gpu;
    if (!best.has(name)) best.set(name, fleet);
  }
  return [...best.values()].slice(0, MOST_GPUS);
}

/** Engines of two kinds that both serve whole requests. */
interface Mix {
  readonly base: SizedFleet;
  readonly rest: SizedFleet;
  readonly engines: readonly [base: number, rest: number];
  readonly usdPerHour: number;
  /** Requests/s. */
  readonly sustained: number;
}

async function besideEachOther(
  measurerOf: MeasurerOf,
  fleets: readonly SizedFleet[],
  { trace, work, whole, ...split }: PlannedTraffic,
  { slo, mostEngines, seed }: SizingOptions,
): Promise<Found> {
  const rate = requestRate(whole);
  const mixes = fleets
    .flatMap((base, i) => fleets.slice(i + 1).flatMap((rest) => mixesOf(base, rest, rate)))
    .filter(({ engines: [base, rest] }) => base + rest <= mostEngines)
    .sort((a, b) => a.usdPerHour - b.usdPerHour || b.sustained - a.sustained)
    .slice(0, TRIES);
  for (const [i, { base, rest, engines, sustained }] of mixes.entries()) {
    const { profile, settings, router } = base.plan;
    const secondWeight = Number((rest.load.sustained / base.load.sustained).toPrecision(2));
    const second: SecondEngines = {
      ...{ profile: rest.plan.profile, candidate: rest.plan.settings },
      ...{ replicas: engines[1], weight: secondWeight },
    };
    const measurer = measurerOf(base);
    const serve = async (load: number) => {
      const [[point]] = await measurer.measure(whole, [{ candidate: settings, loads: [load] }], {
        ...{ seed, replicas: engines[0], router, second },
      });
      return point;
    };
    const point = await serve(1);
    if (sloUse(point, slo) > 1) continue;
    const pools: PlanPool[] = [
      { role: 'all', profile, settings, engines: engines[0] },
      { role: 'all', profile: second.profile, settings: second.candidate, engines: engines[1] },
    ];
    const scaled = autoscaledEngines(trace, rest.load.sustained, {
      ...{ most: engines[1], fewest: 0 },
      outputWeight: outputWeight(second.profile, second.candidate.weights),
      base: engines[0] * base.load.sustained,
    });
    const total = engines[0] + engines[1];
    const load: EngineLoad = {
      points: base.load.points,
      sustained: sustained / total,
      draws: base.load.draws.map((own, at) => (engines[0] * own + engines[1] * rest.load.draws[at]) / total),
    };
    const plan = fleetPlan({ trace, work, whole, ...split }, slo, {
      ...{ pools, router, secondWeight, load, point, strained: await serve(SURGE) },
      autoscaled: {
        engines: engines[0] + scaled,
        usdPerHour: engines[0] * engineUsd(profile) + scaled * engineUsd(second.profile),
      },
    });
    return { plan, tried: i + 1 };
  }
  return { plan: null, tried: mixes.length };
}

/** Every number of engines for the base load, with as many of the rest as then are expected to be enough. */
function mixesOf(base: SizedFleet, rest: SizedFleet, rate: number): Mix[] {
  const needed = LEAST_SUSTAINED * rate;
  const mixes: Mix[] = [];
  for (let first = 1; first * base.load.sustained < rate; first++) {
    const left = Math.max(1, Math.ceil((needed - first * base.load.sustained) / rest.load.sustained));
    for (const second of [left, left + 1]) {
      mixes.push({
        ...{ base, rest, engines: [first, second] },
        usdPerHour: first * engineUsd(base.plan.profile) + second * engineUsd(rest.plan.profile),
        sustained: first * base.load.sustained + second * rest.load.sustained,
      });
    }
  }
  return mixes;
}

async function dividedOver(
  measurerOf: MeasurerOf,
  fleets: readonly SizedFleet[],
  traffic: PlannedTraffic,
  options: SizingOptions,
): Promise<Found> {
  const { slo, seed, mostEngines } = options;
  const pairs = fleets.flatMap((prefill) =>
    fleets.flatMap((decode) => (prefill === decode || !sameKv(prefill, decode) ? [] : [{ prefill, decode }])),
  );
  const blocks = someBlocks(traffic.search, FIRST_BLOCKS);
  const rough = await Promise.all(
    pairs.map(async ({ prefill, decode }) => {
      const second = dividedSecond(decode);
      const candidates = RATIOS.filter((ratio) => ratio === '1:1' || mostEngines > 2).map((split) => ({
        ...startOf(prefill),
        split,
      }));
      const points = await measurerOf(prefill).measure(
        blocks,
        candidates.map((candidate) => ({ candidate, search: { guess: 1, step: 2, tolerance: 1.25 } })),
        { seed, second },
      );
      return candidates.map((candidate, i) => {
        const [first, then] = candidate.split.split(':').map(Number);
        const groupUsd = first * engineUsd(prefill.plan.profile) + then * engineUsd(decode.plan.profile);
        const load = sustainedLoad(points[i], slo);
        const groups = 1 / (load * (first + then));
        return { ...{ prefill, second, candidate, load }, usd: groupUsd * Math.ceil(groups), groups };
      });
    }),
  );
  const tried = rough.flat();
  const kept = tried
    .filter(({ load }) => load > 0)
    .sort((a, b) => a.usd - b.usd || a.groups - b.groups)
    .slice(0, KEPT);
  let best: FleetPlan | null = null;
  for (const { prefill, second, candidate, load: guess } of mostEngines > 1 ? kept : []) {
    const measurer = measurerOf(prefill);
    const load = await measureEngine(measurer, traffic, { candidate, guess }, options, second);
    if (load.sustained === 0) continue;
    const { profile } = prefill.plan;
    const plan = await sizeFleet(measurer, profile, traffic, { candidate, guess, load }, options, second);
    if (plan !== null && (best === null || plan.usdPerHour < best.usdPerHour)) best = plan;
  }
  return { plan: best, tried: tried.length };
}

/** vLLM's defaults with the weights of a fleet. */
function startOf({ plan }: SizedFleet): Candidate {
  return { ...vllmDefaults(plan.profile), weights: plan.settings.weights };
}

function dividedSecond(decode: SizedFleet): SecondEngines {
  return { profile: decode.plan.profile, candidate: startOf(decode), replicas: null, weight: 1 };
}

/** Whether one can decode what the other has prefilled. */
function sameKv(a: SizedFleet, b: SizedFleet): boolean {
  return a.plan.profile.model.kvBytesPerToken === b.plan.profile.model.kvBytesPerToken;
}
