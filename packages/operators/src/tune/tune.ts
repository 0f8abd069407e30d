import type { JobEngine } from '@servegym/jobs';
import type { EngineProfile } from '@servegym/simulator';
import { servingCommands } from '../deployment/serving-command.ts';
import { tuneVerdict } from '../report/tune-report.ts';
import { candidateKey, candidateSpace } from './candidate.ts';
import { choicesOf, controllerGain, frontPoints, pointFigures } from './choices.ts';
import { type Finalist, measureFinalists } from './finalists.ts';
import { goodShare, type LoadPoint, sloUse } from './load-point.ts';
import { CandidateMeasurer, fewestThatHold, SURGE, wholeGroups } from './measure-candidates.ts';
import { profileError, widened } from './profile-error.ts';
import { CandidateSearch, type SearchedCandidate, type TuneOptions } from './search.ts';
import type { SloTerm } from './slo.ts';
import { joinTraffic, requestRate, type SplitTraffic, type Traffic } from './traffic.ts';
import type { ImpossibleTune, LoadCurvePoint, PossibleTune, TuneResult } from './tune-result.ts';

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
  const targetLoad = rateScale / options.replicas[1];
  const search = new CandidateSearch(measurer, space, split.search, { ...options, onStage: say, targetLoad });
  const { considered, ranked } = await search.run();
  const whole = joinTraffic([split.search, split.heldOut]);
  say('the finalists');
  const finalists = await measureFinalists(measurer, split, ranked, objective);
  const common = (): Common => ({
    ...{ profile, objective, slo, considered },
    ...{ trace: whole.trace.source, refused: options.refused },
    requestsSearched: split.search.trace.arrivalMs.length,
    requestsHeldOut: split.heldOut.trace.arrivalMs.length,
    ...(whole.concurrency === undefined
      ? { requestsPerS: requestRate(whole) * rateScale }
      : { requestsPerS: null, concurrency: Math.max(1, Math.round(whole.concurrency * rateScale)) }),
    simulations: measurer.simulations,
    simulatedRequests: measurer.simulatedRequests,
    wallS: (performance.now() - started) / 1000,
  });
  if (finalists[0].searched.value === 0) {
    say('whether anything meets the SLO');
    const nearest = await measurer.nearest(split.search, ranked);
    return { ...common(), possible: false, nearest };
  }
  const found = await describeFinalists(measurer, { split, whole, finalists, ranked }, options, say);
  const result = { ...common(), possible: true as const, ...found };
  return { ...result, verdict: tuneVerdict(result, found.controller) };
}

/** What every result says. */
type Common = Omit<ImpossibleTune, 'possible' | 'nearest'>;

/** Figures of the finalists, and what the best of them takes to serve the whole traffic. */
async function describeFinalists(
  measurer: CandidateMeasurer,
  found: {
    readonly split: SplitTraffic;
    readonly whole: Traffic;
    readonly finalists: readonly Finalist[];
    readonly ranked: readonly SearchedCandidate[];
  },
  { rateScale, replicas: allowed }: TuneOptions,
  say: (stage: string) => void,
) {
  const { profile, slo } = measurer;
  const { split, whole, finalists, ranked } = found;
  const [winner] = finalists;
  say('replicas');
  const engines = await planReplicas(measurer, whole, winner, rateScale, allowed);
  const { replicas } = engines.deployment;

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
  const { front, others } = frontPoints(measurer, split.search, choices, atLoads, referenceLoad);
  const onFront = new Set(front.map((point) => candidateKey(point.settings)));
  const candidates = finalists.map(({ candidate, isDefault, searched, heldOut, overDefaults }, i) => ({
    ...{ settings: candidate, isDefault, overDefaults },
    onFront: onFront.has(candidateKey(candidate)),
    sustainedRps: {
      ...heldOut,
      interval: widened(heldOut.interval, profileError(profile, candidate.weights).share),
    },
    sustainedRpsSearched: searched,
    ...pointFigures(profile, whole, candidate, heldOut.value, latencies[i][0]),
  }));
  const { heldOut, prediction } = winner;
  return {
    ...{ candidates, front, others },
    confirmed: heldOut.value >= prediction.low && heldOut.value <= prediction.high,
    predictedRps: prediction,
    referenceRps: latencies[0][0].rate,
    curves: {
      winner: curveOf(winner.heldOutPoints, slo),
      defaults: curveOf(finalists.find(({ isDefault }) => isDefault)?.heldOutPoints ?? [], slo),
    },
    ...engines,
    controller: controllerGain(
      atLoads.map((points) => points.find(({ load }) => load === controllerLoad)!),
      measurer.seed,
    ),
    commands: servingCommands(profile, winner.candidate, replicas ?? allowed[1]),
  };
}

/** Curve of settings as the traffic grows. */
function curveOf(points: readonly LoadPoint[], slo: readonly SloTerm[]): LoadCurvePoint[] {
  return points.map((point) => ({ rate: point.rate, sloUse: sloUse(point, slo), good: goodShare(point) }));
}

/** Engines for the whole traffic, and for a surge: with more of them, and on the same. */
async function planReplicas(
  measurer: CandidateMeasurer,
  whole: Traffic,
  { candidate, searchedLoad, heldOut }: Finalist,
  rateScale: number,
  replicas: TuneOptions['replicas'],
): Promise<Pick<PossibleTune, 'deployment' | 'at_1_5_times'>> {
  const engine = { candidate, load: searchedLoad, sustained: heldOut.value };
  const fewest = (load: number) => fewestThatHold(measurer, whole, engine, load, replicas);
  const deployment = await fewest(rateScale);
  const surge = await fewest(rateScale * SURGE);
  const strained = await measurer.at(whole, candidate, rateScale * SURGE, {
    replicas: deployment.replicas ?? wholeGroups(candidate, replicas[1]),
  });
  return { deployment, at_1_5_times: { ...surge, goodOnSameReplicas: goodShare(strained) } };
}
