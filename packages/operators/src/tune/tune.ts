import type { JobEngine } from '@servegym/jobs';
import type { EngineProfile } from '@servegym/simulator';
import { servingCommands } from '../deployment/serving-command.ts';
import { type Candidate, candidateKey, candidateSpace, fewestEngines } from './candidate.ts';
import { controllerGain } from './controller-gain.ts';
import { type Finalist, measureFinalists } from './finalists.ts';
import { goodShare, type LoadPoint, type ServedLoad, sloUse } from './load-point.ts';
import { CandidateMeasurer } from './measure-candidates.ts';
import { choicesOf, frontPoints, usdPerMillionTokens } from './pareto-front.ts';
import { HELD_OUT_SEED, type SearchResult, searchCandidates, type TuneOptions } from './search.ts';
import type { SloTerm } from './slo.ts';
import { LEAST_LOAD } from './sustained-load.ts';
import { joinTraffic, requestRate, type SplitTraffic, type Traffic } from './traffic.ts';
import type { Deployment, Impossible, LoadCurvePoint, TunedCandidate, TuneResult } from './tune-result.ts';

/** Factor on the traffic of the surge. */
const SURGE = 1.5;
/** The load at which a controller is asked for: a bit more than fixed settings sustain. */
const CONTROLLER_LOAD = 1.2;

/** Finds the settings that serve a traffic best on a profile. */
export async function tuneProfile(
  jobs: JobEngine,
  profile: EngineProfile,
  split: SplitTraffic,
  options: TuneOptions,
): Promise<TuneResult> {
  const { slo, objective, seed, rateScale, onProgress = () => undefined } = options;
  const started = performance.now();
  let stage = '';
  const measurer = new CandidateMeasurer(jobs, profile, slo, (share) => onProgress(stage, share));
  const say = (next: string) => {
    stage = next;
    onProgress(stage, 0);
  };
  const space = candidateSpace(profile, {
    knobs: options.knobs,
    minQuality: options.minQuality,
    hasPrefixes: split.search.trace.prefixBlocks !== undefined,
    hasClasses: split.search.priorities !== undefined,
    mostReplicas: options.replicas[1],
  });
  const search = await searchCandidates(measurer, profile, space, split.search, slo, {
    ...{ objective, seed, start: options.start, onStage: say, onBest: options.onBest },
    targetLoad: rateScale / options.replicas[1],
  });
  const whole = joinTraffic([split.search, split.heldOut]);
  const common = {
    ...{ profile, objective, slo, considered: search.considered },
    traffic: {
      source: whole.trace.source,
      searched: split.search.trace.arrivalMs.length,
      heldOut: split.heldOut.trace.arrivalMs.length,
      ...(whole.concurrency === undefined
        ? { rate: requestRate(whole) * rateScale }
        : { rate: null, concurrency: Math.max(1, Math.round(whole.concurrency * rateScale)) }),
    },
  };
  const totals = () => ({
    simulations: measurer.simulations,
    simulatedRequests: measurer.simulatedRequests,
    wallS: (performance.now() - started) / 1000,
  });

  say('the finalists');
  const finalists = await measureFinalists(measurer, profile, split, search, options);
  const winner = finalists[0];
  if (winner.searched.value === 0) {
    say('whether anything meets the SLO');
    const impossible = await nearestToSlo(measurer, split.search, search, slo, seed);
    return { ...NOTHING_FOUND, ...common, ...totals(), impossible, commands: [] };
  }

  say('replicas');
  const deployments = await planDeployments(measurer, profile, whole, winner, options);
  const { replicas } = deployments.deployment;

  say('the Pareto front');
  const referenceLoad = replicas === null ? 0.8 * winner.searchedLoad : rateScale / replicas;
  const controllerLoad = CONTROLLER_LOAD * winner.searchedLoad;
  const choices = choicesOf(search.ranked);
  const atLoads = await measurer.measure(
    split.search,
    choices.map(({ candidate }) => ({ candidate, loads: [referenceLoad, controllerLoad] })),
    { seed },
  );
  const latencies = await measurer.measure(
    split.heldOut,
    finalists.map(({ candidate }) => ({ candidate, loads: [referenceLoad] })),
    { seed: seed + HELD_OUT_SEED },
  );
  const front = frontPoints(profile, split.search, choices, atLoads, slo, referenceLoad);
  const candidates = finalists.map(
    (finalist, i): TunedCandidate => ({
      ...candidateFigures(profile, whole, finalist, latencies[i][0]),
      onFront: front.some(
        (point) => point.onFront && candidateKey(point.candidate) === candidateKey(finalist.candidate),
      ),
    }),
  );
  const defaults = finalists.find(({ isDefault }) => isDefault);
  return {
    ...common,
    ...totals(),
    impossible: null,
    candidates,
    prediction: winner.prediction,
    isConfirmed:
      winner.heldOut.value >= winner.prediction.low && winner.heldOut.value <= winner.prediction.high,
    referenceRate: latencies[0][0].rate,
    front,
    curves: {
      winner: curveOf(winner, slo),
      defaults: defaults === undefined ? [] : curveOf(defaults, slo),
    },
    ...deployments,
    controller: controllerGain(
      atLoads.map((points) => points.find(({ load }) => load === controllerLoad)!),
      seed,
    ),
    commands: servingCommands(profile, winner.candidate, replicas ?? options.replicas[1]),
  };
}

/** Figures of a finalist, with its latencies at one load. */
function candidateFigures(
  profile: EngineProfile,
  whole: Traffic,
  { candidate, isDefault, searched, heldOut, overDefaults }: Finalist,
  { ttftP99Ms, tpotP99Ms }: LoadPoint,
): Omit<TunedCandidate, 'onFront'> {
  return {
    ...{ candidate, isDefault, searched, heldOut, overDefaults, ttftP99Ms, tpotP99Ms },
    usdPerMillionTokens: usdPerMillionTokens(profile, whole, heldOut.value),
    quality: profile.weights[candidate.weights]!.quality,
  };
}

/** Curve of a finalist as the held-out traffic grows. */
function curveOf({ heldOutPoints }: Finalist, slo: readonly SloTerm[]): LoadCurvePoint[] {
  return heldOutPoints.map((point) => ({
    rate: point.rate,
    sloUse: sloUse(point, slo),
    good: goodShare(point),
  }));
}

/** Candidates that are tried when the SLO may be impossible. */
const LAST_RESORT = 60;

/** Candidate that comes nearest to an SLO that nothing meets. */
async function nearestToSlo(
  measurer: CandidateMeasurer,
  traffic: Traffic,
  { ranked }: SearchResult,
  slo: readonly SloTerm[],
  seed: number,
): Promise<Impossible> {
  const tried = ranked.slice(0, LAST_RESORT);
  const points = await measurer.measure(
    traffic,
    tried.map(({ candidate }) => ({ candidate, loads: [LEAST_LOAD] })),
    { seed },
  );
  const worst = (values: readonly number[]) => Math.max(...slo.map(({ limitMs }, t) => values[t] / limitMs));
  let best = 0;
  for (const [i, [point]] of points.entries()) {
    if (worst(point!.values) < worst(points[best][0].values)) best = i;
  }
  return { candidate: tried[best].candidate, load: LEAST_LOAD, values: points[best][0].values };
}

const NO_DEPLOYMENT: Deployment = { load: 1, replicas: null, good: 0, usdPerHour: null };

/** The parts of a result that there are none of when the SLO is impossible. */
const NOTHING_FOUND = {
  candidates: [],
  prediction: { low: 0, high: 0 },
  isConfirmed: false,
  referenceRate: 0,
  front: [],
  curves: { winner: [], defaults: [] },
  deployment: NO_DEPLOYMENT,
  surge: NO_DEPLOYMENT,
  surgeWithoutMore: 0,
  controller: { load: 0, fixed: 0, clairvoyant: 0, gain: 0, interval: { low: 0, high: 0 }, blocks: 0 },
} as const;

/** Engines for the whole traffic, and for a surge: with more of them, and on the same. */
async function planDeployments(
  measurer: CandidateMeasurer,
  profile: EngineProfile,
  whole: Traffic,
  winner: Finalist,
  options: TuneOptions,
): Promise<Pick<TuneResult, 'deployment' | 'surge' | 'surgeWithoutMore'>> {
  const { rateScale, seed, replicas } = options;
  const deploy = (load: number) => deployment(measurer, profile, whole, winner, load, options);
  const planned = await deploy(rateScale);
  const surge = await deploy(rateScale * SURGE);
  const [[strained]] = await measurer.measure(
    whole,
    [{ candidate: winner.candidate, loads: [rateScale * SURGE] }],
    { seed, replicas: planned.replicas ?? wholeGroups(winner.candidate, replicas[1]) },
  );
  return { deployment: planned, surge, surgeWithoutMore: goodShare(strained) };
}

/** Number of engines that the whole traffic takes at a load. */
export async function deployment(
  measurer: CandidateMeasurer,
  profile: EngineProfile,
  whole: Traffic,
  winner: {
    readonly candidate: Candidate;
    readonly searchedLoad: number;
    readonly heldOut: { readonly value: number };
  },
  load: number,
  {
    slo,
    seed,
    replicas: [fewest, most],
    ...fleet
  }: Pick<TuneOptions, 'slo' | 'seed' | 'replicas'> & Pick<ServedLoad, 'router' | 'second'>,
): Promise<Deployment & { readonly point: LoadPoint | null }> {
  const expected = Math.floor(
    whole.concurrency === undefined
      ? (load * requestRate(whole)) / winner.heldOut.value
      : load / winner.searchedLoad,
  );
  let good = 0;
  let last: LoadPoint | null = null;
  const step = fewestEngines(winner.candidate);
  const start = step * Math.ceil(Math.min(most, Math.max(fewest, expected)) / step);
  for (let replicas = start; replicas <= most; replicas += step) {
    const [points] = await measurer.measure(whole, [{ candidate: winner.candidate, loads: [load] }], {
      ...{ seed, replicas, router: fleet.router, second: fleet.second },
    });
    const [point] = points as [LoadPoint];
    last = point;
    good = goodShare(point);
    if (sloUse(point, slo) <= 1) {
      const usdPerHour = replicas * profile.gpu.count * profile.gpu.usdPerHour;
      return { load, replicas, good, usdPerHour, point };
    }
  }
  return { load, replicas: null, good, usdPerHour: null, point: last };
}

/** The most engines, of so many, that can serve together. */
export function wholeGroups(candidate: Pick<Candidate, 'split'>, most: number): number {
  const fewest = fewestEngines(candidate);
  return fewest * Math.floor(most / fewest);
}
