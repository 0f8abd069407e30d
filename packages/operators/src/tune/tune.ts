import type { JobEngine } from '@servegym/jobs';
import { type EngineProfile, scaleRate } from '@servegym/simulator';
import { servingCommands } from '../deployment/serving-command.ts';
import { tuneVerdict } from '../report/tune-report.ts';
import { candidateKey, namedValues, profileSpaceOf } from '../search/candidate.ts';
import { type EngineChoice, Evaluator, fewestThatHold, SURGE, wholeGroups } from '../search/evaluator.ts';
import { goodShare, type LoadPoint, sloUse } from '../search/load-point.ts';
import type { SearchedLoad } from '../search/load-question.ts';
import { profileError, widened } from '../search/profile-error.ts';
import { searchAutoscalers } from '../search/search-autoscalers.ts';
import { type RouterChoice, searchedSpace } from '../search/search-space.ts';
import type { SloTerm } from '../search/slo.ts';
import { joinTraffic, requestRate, type SplitTraffic, type Traffic } from '../search/traffic.ts';
import { choicesOf, controllerGain, frontPoints, pointFigures } from './choices.ts';
import { type Finalist, measureFinalists } from './finalists.ts';
import { searchSettings, type TuneOptions } from './search-settings.ts';
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
  const evaluator = new Evaluator(jobs, options, (share) => onProgress(stage, share));
  const say = (next: string) => {
    stage = next;
    onProgress(stage, 0);
  };
  const { values: space, left } = profileSpaceOf(profile, {
    space: options.space,
    minQuality: options.minQuality,
    hasPrefixes: split.search.trace.prefixBlocks !== undefined,
    hasClasses: split.search.priorities !== undefined,
    mostReplicas: options.replicas[1],
  });
  const fixed =
    options.trace === undefined
      ? 'the traffic has no arrivals of its own'
      : options.replicas[1] === 1
        ? 'one engine serves'
        : undefined;
  const targetLoad = rateScale / options.replicas[1];
  const how = { ...options, onStage: say, targetLoad };
  const { ranked, ...effort } = await searchSettings(evaluator, profile, space, split.search, how);
  const whole = joinTraffic([split.search, split.heldOut]);
  say('the finalists');
  const finalists = await measureFinalists(evaluator, split, ranked, objective);
  const common = (): Common => ({
    ...{ profile, objective, slo, ...effort },
    ...searchedSpace({ ...options.space, ...namedValues(space) }, [{ ...left, autoscaler: fixed }]),
    ...{ trace: whole.trace.source, refused: options.refused },
    requestsSearched: split.search.trace.arrivalMs.length,
    requestsHeldOut: split.heldOut.trace.arrivalMs.length,
    ...(whole.concurrency === undefined
      ? { requestsPerS: requestRate(whole) * rateScale }
      : { requestsPerS: null, concurrency: Math.max(1, Math.round(whole.concurrency * rateScale)) }),
    simulations: evaluator.simulations,
    simulatedRequests: evaluator.simulatedRequests,
    wallS: (performance.now() - started) / 1000,
  });
  if (finalists[0].searched.value === 0) {
    say('whether anything meets the SLO');
    const { profile: _, ...nearest } = await evaluator.nearest(split.search, ranked);
    return { ...common(), possible: false, nearest };
  }
  const found = await describeFinalists(evaluator, { split, whole, finalists, ranked }, options, say);
  say('autoscalers');
  const autoscaled = await autoscale(evaluator, whole, finalists, options);
  const result = { ...common(), possible: true as const, ...found, autoscaled };
  return { ...result, verdict: tuneVerdict(result, found.controller) };
}

/** What every result says. */
type Common = Omit<ImpossibleTune, 'possible' | 'nearest'>;

/** Figures of the finalists, and what the best of them takes to serve the whole traffic. */
async function describeFinalists(
  evaluator: Evaluator,
  found: {
    readonly split: SplitTraffic;
    readonly whole: Traffic;
    readonly finalists: readonly Finalist[];
    readonly ranked: readonly SearchedLoad[];
  },
  { rateScale, replicas: allowed, space: { router: routers } }: TuneOptions,
  say: (stage: string) => void,
) {
  const { slo } = evaluator;
  const { split, whole, finalists, ranked } = found;
  const [winner] = finalists;
  const { profile } = winner;
  say('replicas');
  const engines = await planReplicas(evaluator, whole, winner, rateScale, allowed, routers);
  const { replicas, router } = engines.deployment;

  say('the Pareto front');
  const referenceLoad = replicas === null ? 0.8 * winner.searchedLoad : rateScale / replicas;
  const controllerLoad = CONTROLLER_LOAD * winner.searchedLoad;
  const choices = choicesOf(ranked);
  const atLoads = await evaluator.measure(
    split.search,
    choices.map((choice) => ({ ...chosen(choice), loads: [referenceLoad, controllerLoad] })),
  );
  const latencies = await evaluator.measure(
    split.heldOut,
    finalists.map((choice) => ({ ...chosen(choice), loads: [referenceLoad] })),
    { seed: evaluator.heldOutSeed },
  );
  const { front, others } = frontPoints(slo, split.search, choices, atLoads, referenceLoad);
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
      evaluator.seed,
    ),
    commands: servingCommands(profile, winner.candidate, replicas ?? allowed[1], { router }),
  };
}

function chosen({ profile, candidate }: EngineChoice): EngineChoice {
  return { profile, candidate };
}

/** Curve of settings as the traffic grows. */
function curveOf(points: readonly LoadPoint[], slo: readonly SloTerm[]): LoadCurvePoint[] {
  return points.map((point) => ({ rate: point.rate, sloUse: sloUse(point, slo), good: goodShare(point) }));
}

/** The autoscaler with the lowest bill, of all finalists. */
async function autoscale(
  evaluator: Evaluator,
  whole: Traffic,
  finalists: readonly Finalist[],
  { rateScale, replicas: allowed, trace, space: { router: routers, autoscaler = [] } }: TuneOptions,
): Promise<PossibleTune['autoscaled']> {
  if (autoscaler.length === 0 || trace === undefined) return undefined;
  const sized = finalists
    .filter(({ heldOut, searchedLoad }) => heldOut.value > 0 && searchedLoad > 0)
    .map(async ({ profile, candidate, searchedLoad: load, heldOut: { value: sustained } }) => {
      const engine = { profile, candidate, load, sustained };
      const { replicas, router } = await fewestThatHold(evaluator, whole, engine, rateScale, allowed, {
        routers,
      });
      return replicas === null ? [] : [{ profile, candidate, router, most: replicas }];
    });
  const fleets = (await Promise.all(sized)).flat();
  const { found } = await searchAutoscalers(evaluator, scaleRate(trace, rateScale), fleets, autoscaler);
  const tried = found.flatMap((each, i) =>
    each === undefined ? [] : [each && { ...each, settings: fleets[i].candidate, most: fleets[i].most }],
  );
  const holding = tried.filter((each) => each !== null).sort((a, b) => a.usdPerHour - b.usdPerHour);
  return tried.length === 0 ? undefined : (holding[0] ?? null);
}

/** Engines for the whole traffic, and for a surge: with more of them, and on the same. */
async function planReplicas(
  evaluator: Evaluator,
  whole: Traffic,
  { profile, candidate, searchedLoad, heldOut }: Finalist,
  rateScale: number,
  replicas: TuneOptions['replicas'],
  routers: readonly RouterChoice[] | undefined,
): Promise<Pick<PossibleTune, 'deployment' | 'at_1_5_times'>> {
  const engine = { profile, candidate, load: searchedLoad, sustained: heldOut.value };
  const fewest = (load: number) => fewestThatHold(evaluator, whole, engine, load, replicas, { routers });
  const deployment = await fewest(rateScale);
  const surge = await fewest(rateScale * SURGE);
  const strained = await evaluator.at(whole, engine, rateScale * SURGE, {
    replicas: deployment.replicas ?? wholeGroups(candidate, replicas[1]),
    router: deployment.router,
  });
  return { deployment, at_1_5_times: { ...surge, goodOnSameReplicas: goodShare(strained) } };
}
