import { type Candidate, engineUsd, type SplitRatio, vllmDefaults } from '../search/candidate.ts';
import type { Evaluator } from '../search/evaluator.ts';
import { sloUse } from '../search/load-point.ts';
import { autoscaledEngines } from '../search/trace-cost.ts';
import { requestRate } from '../search/traffic.ts';
import type { FleetPlan, PlanPool } from './plan-result.ts';
import {
  fleetPlan,
  measureEngine,
  outputWeight,
  type PlannedTraffic,
  type SizedFleet,
  serveFleet,
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

interface Found {
  readonly plan: FleetPlan | null;
  /** Fleets that were simulated. */
  readonly tried: number;
}

/**
 * The cheapest fleets of two kinds of GPU: one in which both serve whole requests, the cheaper kind for the base load, and
 * one in which one kind prefills and the other decodes.
 *
 * @param fleets of one profile each
 */
export async function mixedFleets(
  evaluator: Evaluator,
  fleets: readonly SizedFleet[],
  traffic: PlannedTraffic,
  mostEngines: number,
): Promise<{ readonly plans: readonly FleetPlan[]; readonly tried: number }> {
  const cheapest = cheapestOfEachGpu(fleets);
  const beside = await besideEachOther(evaluator, cheapest, traffic, mostEngines);
  const divided = await dividedOver(evaluator, cheapest, traffic, mostEngines);
  return {
    plans: [beside.plan, divided.plan].filter((plan) => plan !== null),
    tried: beside.tried + divided.tried,
  };
}

/** USD an hour for a request a second. */
function usdPerRate({ plan, engine }: SizedFleet): number {
  return engineUsd(plan.profile) / engine.sustained;
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

async function besideEachOther(
  evaluator: Evaluator,
  fleets: readonly SizedFleet[],
  traffic: PlannedTraffic,
  mostEngines: number,
): Promise<Found> {
  const rate = requestRate(traffic.whole);
  const mixes = fleets
    .flatMap((base, i) => fleets.slice(i + 1).flatMap((rest) => mixesOf(base, rest, rate)))
    .filter(({ engines: [first, second] }) => first + second <= mostEngines)
    .sort((a, b) => a.usdPerHour - b.usdPerHour || b.sustained - a.sustained)
    .slice(0, TRIES);
  for (const [i, mix] of mixes.entries()) {
    const plan = await planOfMix(evaluator, traffic, mix);
    if (plan !== null) return { plan, tried: i + 1 };
  }
  return { plan: null, tried: mixes.length };
}

/** The plan of a mix; `null` when the whole traffic does not meet the SLO on it. */
async function planOfMix(
  evaluator: Evaluator,
  traffic: PlannedTraffic,
  { base, rest, engines: [first, second], sustained }: ReturnType<typeof mixesOf>[number],
): Promise<FleetPlan | null> {
  const pools = [base, rest].map(({ plan: { profile, settings } }, at): PlanPool => {
    return { role: 'all', profile, settings, engines: at === 0 ? first : second };
  });
  const fleet = {
    ...{ pools, router: base.plan.router },
    secondWeight: Number((rest.engine.sustained / base.engine.sustained).toPrecision(2)),
  };
  const point = await serveFleet(evaluator, traffic, fleet, 1);
  if (sloUse(point, evaluator.slo) > 1) return null;
  const { profile, settings } = rest.plan;
  const scaled = autoscaledEngines(traffic.trace, rest.engine.sustained, {
    ...{ most: second, fewest: 0 },
    outputWeight: outputWeight(profile, settings.weights),
    base: first * base.engine.sustained,
  });
  const total = first + second;
  const { points, draws } = base.engine;
  return fleetPlan(evaluator, traffic, fleet, {
    point,
    engine: {
      ...{ points, sustained: sustained / total },
      draws: draws.map((own, at) => (first * own + second * rest.engine.draws[at]) / total),
    },
    autoscaled: {
      engines: first + scaled,
      usdPerHour: first * engineUsd(base.plan.profile) + scaled * engineUsd(profile),
    },
  });
}

/** Every number of engines for the base load, with as many of the rest as then are expected to be enough. */
function mixesOf(base: SizedFleet, rest: SizedFleet, rate: number) {
  const needed = LEAST_SUSTAINED * rate;
  const counts: (readonly [base: number, rest: number])[] = [];
  for (let first = 1; first * base.engine.sustained < rate; first++) {
    const left = Math.max(1, Math.ceil((needed - first * base.engine.sustained) / rest.engine.sustained));
    counts.push([first, left], [first, left + 1]);
  }
  return counts.map((engines) => {
    const [first, second] = engines;
    const usdPerHour = first * engineUsd(base.plan.profile) + second * engineUsd(rest.plan.profile);
    const sustained = first * base.engine.sustained + second * rest.engine.sustained;
    return { base, rest, engines, usdPerHour, sustained };
  });
}

async function dividedOver(
  evaluator: Evaluator,
  fleets: readonly SizedFleet[],
  traffic: PlannedTraffic,
  mostEngines: number,
): Promise<Found> {
  const pairs = fleets.flatMap((prefill) =>
    fleets.flatMap((decode) => (prefill === decode || !sameKv(prefill, decode) ? [] : [{ prefill, decode }])),
  );
  const ratios = RATIOS.filter((ratio) => ratio === '1:1' || mostEngines > 2);
  const rough = await Promise.all(
    pairs.map(async ({ prefill, decode }) => {
      const { profile } = decode.plan;
      const second = { profile, candidate: startOf(decode), replicas: null, weight: 1 };
      const candidates = ratios.map((split) => ({
        ...{ profile: prefill.plan.profile, candidate: { ...startOf(prefill), split } },
        search: { guess: 1, step: 2, tolerance: 1.25 },
      }));
      const found = await evaluator.sustained(traffic.few, candidates, { second });
      return found.map(({ candidate, load }, i) => {
        const [first, then] = ratios[i].split(':').map(Number);
        const groupUsd = first * engineUsd(prefill.plan.profile) + then * engineUsd(profile);
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
    const choice = { profile: prefill.plan.profile, candidate };
    const engine = await measureEngine(evaluator, traffic, choice, guess, second);
    if (engine.sustained === 0) continue;
    const plan = await sizeFleet(evaluator, traffic, engine, mostEngines, second);
    if (plan !== null && (best === null || plan.usdPerHour < best.usdPerHour)) best = plan;
  }
  return { plan: best, tried: tried.length };
}

/** vLLM's defaults with the weights of a fleet. */
function startOf({ plan }: SizedFleet): Candidate {
  return { ...vllmDefaults(plan.profile), weights: plan.settings.weights };
}

/** Whether one can decode what the other has prefilled. */
function sameKv(a: SizedFleet, b: SizedFleet): boolean {
  return a.plan.profile.model.kvBytesPerToken === b.plan.profile.model.kvBytesPerToken;
}
