import type { JobEngine } from '@servegym/jobs';
import type { EngineProfile } from '@servegym/simulator';
import { servingCommands } from '../deployment/serving-command.ts';
import { candidateKey, candidateSpace } from './candidate.ts';
import { controllerGain } from './controller-gain.ts';
import { fewestThatHold, SURGE, wholeGroups } from './fewest-engines.ts';
import { type Finalist, measureFinalists } from './finalists.ts';
import { goodShare, type LoadPoint, sloUse } from './load-point.ts';
import { CandidateMeasurer } from './measure-candidates.ts';
import { choicesOf, frontPoints, usdPerMillionTokens } from './pareto-front.ts';
import { type SearchedCandidate, searchCandidates, type TuneOptions } from './search.ts';
import type { SloTerm } from './slo.ts';
import { LEAST_LOAD } from './sustained-load.ts';
import { joinTraffic, requestRate, type SplitTraffic, type Traffic } from './traffic.ts';
import type { Deployment, LoadCurvePoint, TunedCandidate, TuneResult } from './tune-result.ts';

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
  const measurer = new CandidateMeasurer(jobs, profile, options, (share) => onProgress(stage, share));
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
  const { considered, ranked } = await searchCandidates(measurer, space, split.search, {
    ...options,
    onStage: say,
    targetLoad: rateScale / options.replicas[1],
  });
  const whole = joinTraffic([split.search, split.heldOut]);
  say('the finalists');
  const finalists = await measureFinalists(measurer, split, ranked, objective);
  const isPossible = finalists[0].searched.value > 0;
  const found = isPossible
    ? await describeFinalists(measurer, { split, whole, finalists, ranked }, options, say)
    : await describeNearest(measurer, split.search, ranked, say);
  return {
    ...{ profile, objective, slo, considered },
    traffic: {
      source: whole.trace.source,
      searched: split.search.trace.arrivalMs.length,
      heldOut: split.heldOut.trace.arrivalMs.length,
      ...(whole.concurrency === undefined
        ? { rate: requestRate(whole) * rateScale }
        : { rate: null, concurrency: Math.max(1, Math.round(whole.concurrency * rateScale)) }),
    },
    simulations: measurer.simulations,
    simulatedRequests: measurer.simulatedRequests,
    wallS: (performance.now() - started) / 1000,
    ...found,
  };
}

/** What a result says of the settings, beside the traffic and the effort. */
type Found = Omit<
  TuneResult,
  'profile' | 'objective' | 'slo' | 'considered' | 'traffic' | 'simulations' | 'simulatedRequests' | 'wallS'
>;

/** Figures of the finalists, and what the best of them takes to serve the whole traffic. */
async function describeFinalists(
  measurer: CandidateMeasurer,
  {
    split,
    whole,
    finalists,
    ranked,
  }: {
    readonly split: SplitTraffic;
    readonly whole: Traffic;
    readonly finalists: readonly Finalist[];
    readonly ranked: readonly SearchedCandidate[];
  },
  { rateScale, replicas: allowed }: TuneOptions,
  say: (stage: string) => void,
): Promise<Found> {
  const { profile, slo } = measurer;
  const [winner] = finalists;
  say('replicas');
  const deployments = await planDeployments(measurer, whole, winner, rateScale, allowed);
  const { replicas } = deployments.deployment;

  say('the Pareto front');
  const referenceLoad = replicas === null ? 0.8 * winner.searchedLoad : rateScale / replicas;
  const controllerLoad = CONTROLLER_LOAD * winner.searchedLoad;
  const choices = choicesOf(ranked);
  const atLoads = await measurer.measure(
    split.search,
    choices.map(({ candidate }) => ({ candidate, loads: [referenceLoad, controllerLoad] })),
  );
  const latencies = await measurer.measure(
    split.heldOut,
    finalists.map(({ candidate }) => ({ candidate, loads: [referenceLoad] })),
    { seed: measurer.heldOutSeed },
  );
  const front = frontPoints(profile, split.search, choices, atLoads, slo, referenceLoad);
  const isOnFront = (key: string) =>
    front.some((point) => point.onFront && candidateKey(point.candidate) === key);
  return {
    impossible: null,
    candidates: finalists.map((finalist, i) => ({
      ...candidateFigures(profile, whole, finalist, latencies[i][0]),
      onFront: isOnFront(candidateKey(finalist.candidate)),
    })),
    prediction: winner.prediction,
    isConfirmed:
      winner.heldOut.value >= winner.prediction.low && winner.heldOut.value <= winner.prediction.high,
    referenceRate: latencies[0][0].rate,
    front,
    curves: {
      winner: curveOf(winner.heldOutPoints, slo),
      defaults: curveOf(finalists.find(({ isDefault }) => isDefault)?.heldOutPoints ?? [], slo),
    },
    ...deployments,
    controller: controllerGain(
      atLoads.map((points) => points.find(({ load }) => load === controllerLoad)!),
      measurer.seed,
    ),
    commands: servingCommands(profile, winner.candidate, replicas ?? allowed[1]),
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

/** Curve of settings as the traffic grows. */
function curveOf(points: readonly LoadPoint[], slo: readonly SloTerm[]): LoadCurvePoint[] {
  return points.map((point) => ({ rate: point.rate, sloUse: sloUse(point, slo), good: goodShare(point) }));
}

/** Engines for the whole traffic, and for a surge: with more of them, and on the same. */
async function planDeployments(
  measurer: CandidateMeasurer,
  whole: Traffic,
  { candidate, searchedLoad, heldOut }: Finalist,
  rateScale: number,
  replicas: TuneOptions['replicas'],
): Promise<Pick<TuneResult, 'deployment' | 'surge' | 'surgeWithoutMore'>> {
  const engine = { candidate, load: searchedLoad, sustained: heldOut.value };
  const deploy = (load: number) => fewestThatHold(measurer, whole, engine, { load, replicas });
  const deployment = await deploy(rateScale);
  const surge = await deploy(rateScale * SURGE);
  const strained = await measurer.at(whole, candidate, rateScale * SURGE, {
    replicas: deployment.replicas ?? wholeGroups(candidate, replicas[1]),
  });
  return { deployment, surge, surgeWithoutMore: goodShare(strained) };
}

/** Candidates that are tried when the SLO may be impossible. */
const LAST_RESORT = 60;
const NO_DEPLOYMENT: Deployment = { load: 1, replicas: null, good: 0, usdPerHour: null };

/** A result in which nothing meets the SLO, with the candidate that comes nearest. */
async function describeNearest(
  measurer: CandidateMeasurer,
  traffic: Traffic,
  ranked: readonly SearchedCandidate[],
  say: (stage: string) => void,
): Promise<Found> {
  say('whether anything meets the SLO');
  const tried = ranked.slice(0, LAST_RESORT);
  const points = await measurer.measure(
    traffic,
    tried.map(({ candidate }) => ({ candidate, loads: [LEAST_LOAD] })),
  );
  const worst = ({ values }: LoadPoint) =>
    Math.max(...measurer.slo.map(({ limitMs }, t) => values[t] / limitMs));
  let best = 0;
  for (const [i, [point]] of points.entries()) if (worst(point) < worst(points[best][0])) best = i;
  return {
    impossible: { candidate: tried[best].candidate, load: LEAST_LOAD, values: points[best][0].values },
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
    commands: [],
  };
}
