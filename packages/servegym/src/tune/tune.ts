import type { JobEngine } from '@servegym/agents/jobs';
import type { EngineProfile } from '@servegym/simulator';
import { blockResamples, type Interval, percentileInterval } from './block-bootstrap.ts';
import { type Candidate, candidateKey, candidateSpace, type Knob, vllmDefaults } from './candidate.ts';
import { CandidateMeasurer } from './candidate-measurer.ts';
import { controllerGain } from './controller-gain.ts';
import { type LoadPoint, sloUse } from './load-point.ts';
import type { MeasuredCandidate } from './measure-candidates.ts';
import { type Objective, type SearchedCandidate, type SearchResult, searchCandidates } from './search.ts';
import { servingCommands } from './serving-command.ts';
import type { SloTerm } from './slo.ts';
import { LEAST_LOAD, sustainedLoad } from './sustained-load.ts';
import { joinTraffic, requestRate, type SplitTraffic, type Traffic } from './traffic.ts';
import type {
  Deployment,
  Estimate,
  FrontPoint,
  Impossible,
  LoadCurvePoint,
  TunedCandidate,
  TuneResult,
} from './tune-result.ts';

export interface TuneOptions {
  readonly slo: readonly SloTerm[];
  readonly objective: Objective;
  readonly knobs: readonly Knob[];
  readonly minQuality: number;
  /** Fewest and most engines that may share the traffic. */
  readonly replicas: readonly [fewest: number, most: number];
  /** Times the rate of the traffic. */
  readonly rateScale: number;
  /** Candidates to start from. */
  readonly start: number;
  readonly seed: number;
  readonly onProgress?: (stage: string, share: number) => void;
}

/** How much more traffic the settings are tried with. */
export const SURGE = 1.5;

const FINALISTS = 5;
/** Loads around the sustained one at which the finalists are measured. */
const GRID = [0.65, 0.8, 0.9, 0.95, 1.05, 1.12, 1.25, 1.5];
/** The load at which a controller is asked for: a bit more than fixed settings sustain. */
const CONTROLLER_LOAD = 1.2;
/** Candidates a controller may choose among. */
const MOST_CHOICES = 24;
/** Candidates that are tried when the SLO may be impossible. */
const LAST_RESORT = 60;
/** A ratio that nobody would choose for. */
const ALIKE = 1.01;
/** Candidates of each precision, with and without speculation, that the Pareto front looks at. */
const OF_EACH_KIND = 4;
const HELD_OUT_SEED = 7919;

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
    ...{ objective, seed, start: options.start, onStage: say },
    targetLoad: rateScale / options.replicas[1],
  });
  const whole = joinTraffic([split.search, split.heldOut]);
  const common = {
    ...{ profile, objective, slo, considered: search.considered },
    traffic: {
      source: whole.trace.source,
      searched: split.search.trace.arrivalMs.length,
      heldOut: split.heldOut.trace.arrivalMs.length,
      rate: requestRate(whole) * rateScale,
    },
  };
  const totals = () => ({
    simulations: measurer.simulations,
    simulatedRequests: measurer.simulatedRequests,
    wallS: (performance.now() - started) / 1000,
  });

  say('the finalists');
  const finalists = await measureFinalists(measurer, profile, split, search, options);
  const winner = finalists[0]!;
  if (winner.searched.value === 0) {
    say('whether anything meets the SLO');
    const impossible = await nearestToSlo(measurer, split.search, search, slo, seed);
    return { ...EMPTY, ...common, ...totals(), impossible, commands: [] };
  }

  say('replicas');
  const deploy = (load: number) => deployment(measurer, profile, whole, winner, load, options);
  const planned = await deploy(rateScale);
  const surge = await deploy(rateScale * SURGE);
  const engines = planned.replicas ?? evenFor(winner.candidate, options.replicas[1]);
  const [strained] = await measurer.measure(
    whole,
    [{ candidate: winner.candidate, loads: [rateScale * SURGE] }],
    { seed, replicas: engines },
  );

  say('the Pareto front');
  const referenceLoad = planned.replicas === null ? 0.8 * winner.searchedLoad : rateScale / planned.replicas;
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
  const candidates = finalists.map((finalist, i): TunedCandidate => {
    const [{ ttftP99Ms, tpotP99Ms }] = latencies[i] as [LoadPoint];
    const { candidate, isDefault, searched, heldOut, overDefaults } = finalist;
    return {
      ...{ candidate, isDefault, searched, heldOut, overDefaults, ttftP99Ms, tpotP99Ms },
      usdPerMillionTokens: usdPerMillionTokens(profile, whole, heldOut.value),
      quality: profile.weights[candidate.weights]!.quality,
      onFront: front.some(
        (point) => point.onFront && candidateKey(point.candidate) === candidateKey(candidate),
      ),
    };
  });
  const defaults = finalists.find(({ isDefault }) => isDefault);
  return {
    ...common,
    ...totals(),
    impossible: null,
    candidates,
    prediction: winner.prediction,
    isConfirmed:
      winner.heldOut.value >= winner.prediction.low && winner.heldOut.value <= winner.prediction.high,
    referenceRate: referenceLoad * requestRate(split.heldOut),
    front,
    curves: {
      winner: curveOf(winner, split.heldOut, slo),
      defaults: defaults === undefined ? [] : curveOf(defaults, split.heldOut, slo),
    },
    deployment: planned,
    surge,
    surgeWithoutMore: goodShare(strained![0]!),
    controller: controllerGain(
      atLoads.map((points) => points.find(({ load }) => load === controllerLoad)!),
      seed,
    ),
    commands: servingCommands(profile, winner.candidate, planned.replicas ?? options.replicas[1]),
  };
}

interface Finalist {
  readonly candidate: Candidate;
  readonly isDefault: boolean;
  readonly searchedLoad: number;
  readonly searched: Estimate;
  readonly heldOut: Estimate;
  readonly overDefaults: Estimate | null;
  readonly prediction: Interval;
  readonly heldOutPoints: readonly LoadPoint[];
}

/** The best, the best of each precision, without speculation and in pairs, and vLLM's defaults, on both traffics. */
async function measureFinalists(
  measurer: CandidateMeasurer,
  profile: EngineProfile,
  { search: traffic, heldOut: unseen }: SplitTraffic,
  { ranked }: SearchResult,
  { slo, seed, objective }: TuneOptions,
): Promise<Finalist[]> {
  const defaults = vllmDefaults(profile);
  const chosen = new Map<string, SearchedCandidate>();
  const choose = (found: SearchedCandidate | undefined) => {
    if (found !== undefined) chosen.set(candidateKey(found.candidate), found);
  };
  // Settings that never bind make no difference: one of those that come to the same is enough.
  for (const found of differentOf(ranked).slice(0, FINALISTS)) choose(found);
  for (const precision of new Set(ranked.map(({ candidate }) => candidate.weights))) {
    choose(ranked.find(({ candidate }) => candidate.weights === precision));
  }
  choose(ranked.find(({ candidate }) => candidate.speculationDepth === 0));
  choose(ranked.find(({ candidate }) => candidate.split));
  choose(ranked.find(({ candidate }) => candidate.priority));
  choose(ranked.find(({ candidate }) => candidateKey(candidate) === candidateKey(defaults)));
  const finalists = [...chosen.values()];

  const measureBoth = async (howOf: (i: number, side: 0 | 1) => Omit<MeasuredCandidate, 'candidate'>) => {
    const listed = (side: 0 | 1) => finalists.map(({ candidate }, i) => ({ candidate, ...howOf(i, side) }));
    return [
      await measurer.measure(traffic, listed(0), { seed }),
      await measurer.measure(unseen, listed(1), { seed: seed + HELD_OUT_SEED }),
    ] as const;
  };
  const rough = await measureBoth((i) => ({
    search: { guess: objective === 'latency' ? 1 : finalists[i]!.score || 1, step: 1.15, tolerance: 1.05 },
  }));
  const grids = await measureBoth((i, side) => {
    const load = sustainedLoad(rough[side][i]!, slo);
    return { loads: load === 0 ? [] : GRID.map((step) => step * load) };
  });
  const points = rough.map((each, side) =>
    each.map((own, i) => [...own, ...grids[side]![i]!].sort((a, b) => a.load - b.load)),
  );

  const rates = [requestRate(traffic), requestRate(unseen)] as const;
  const resamples = [
    blockResamples(traffic.blockStarts.length - 1, seed),
    blockResamples(unseen.blockStarts.length - 1, seed + HELD_OUT_SEED),
  ] as const;
  const valuesOf = (side: 0 | 1, i: number) =>
    resamples[side].map((weights) => rates[side] * sustainedLoad(points[side]![i]!, slo, weights));
  const resampled = ([0, 1] as const).map((side) => finalists.map((_, i) => valuesOf(side, i)));
  const rateAt = (side: 0 | 1, i: number) => rates[side] * sustainedLoad(points[side]![i]!, slo);
  const defaultAt = finalists.findIndex(
    ({ candidate }) => candidateKey(candidate) === candidateKey(defaults),
  );

  const results = finalists.map(({ candidate }, i): Finalist => {
    const [searched, heldOut] = [rateAt(0, i), rateAt(1, i)];
    const [searchedDraws, heldOutDraws] = [resampled[0]![i]!, resampled[1]![i]!];
    const base = defaultAt === -1 ? 0 : rateAt(1, defaultAt);
    return {
      candidate,
      isDefault: i === defaultAt,
      searchedLoad: searched / rates[0],
      searched: { value: searched, interval: percentileInterval(searchedDraws) },
      heldOut: { value: heldOut, interval: percentileInterval(heldOutDraws) },
      overDefaults:
        base === 0
          ? null
          : {
              value: heldOut / base,
              // On the same resampled blocks, so that what both share cancels out.
              interval: percentileInterval(
                heldOutDraws.map((value, draw) => value / Math.max(1e-9, resampled[1]![defaultAt]![draw]!)),
              ),
            },
      // Resampling raises the sustained load, as some resamples lack the worst blocks: both sides carry that, and here
      // it cancels out.
      prediction: percentileInterval(
        searchedDraws.map((value, draw) => 2 * searched - value + heldOutDraws[draw]! - heldOut),
      ),
      heldOutPoints: points[1]![i]!,
    };
  });
  const [winner, ...others] = results;
  return [winner!, ...others.sort((a, b) => b.heldOut.value - a.heldOut.value)];
}

/** Without those that differ from a better one in settings that never bind. */
function differentOf(ranked: readonly SearchedCandidate[]): SearchedCandidate[] {
  const first = new Map<string, SearchedCandidate>();
  for (const found of ranked) {
    const { weights, speculationDepth, split, priority } = found.candidate;
    const key = `${weights} ${speculationDepth} ${split} ${priority} ${found.score.toPrecision(3)}`;
    if (!first.has(key)) first.set(key, found);
  }
  return [...first.values()];
}

/** The best, and the best of each kind. */
function choicesOf(ranked: readonly SearchedCandidate[]): SearchedCandidate[] {
  const ofKind = new Map<string, number>();
  return ranked.filter(({ candidate: { weights, speculationDepth, split, priority } }, rank) => {
    const kind = `${weights} ${speculationDepth > 0} ${split} ${priority}`;
    const before = ofKind.get(kind) ?? 0;
    ofKind.set(kind, before + 1);
    return rank < MOST_CHOICES || before < OF_EACH_KIND;
  });
}

/** How many engines the whole traffic takes at a load. */
async function deployment(
  measurer: CandidateMeasurer,
  profile: EngineProfile,
  whole: Traffic,
  winner: Finalist,
  load: number,
  { slo, seed, replicas: [fewest, most] }: TuneOptions,
): Promise<Deployment> {
  const expected = Math.floor((load * requestRate(whole)) / winner.heldOut.value);
  let good = 0;
  // Pairs take an even number.
  const step = winner.candidate.split ? 2 : 1;
  const start = step * Math.ceil(Math.min(most, Math.max(fewest, expected)) / step);
  for (let replicas = start; replicas <= most; replicas += step) {
    const [points] = await measurer.measure(whole, [{ candidate: winner.candidate, loads: [load] }], {
      seed,
      replicas,
    });
    const [point] = points as [LoadPoint];
    good = goodShare(point);
    if (sloUse(point, slo) <= 1) {
      return { load, replicas, good, usdPerHour: replicas * profile.gpu.count * profile.gpu.usdPerHour };
    }
  }
  return { load, replicas: null, good, usdPerHour: null };
}

/** What comes nearest to an SLO that nothing meets. */
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
  const worst = (values: readonly number[]) => Math.max(...slo.map(({ limitMs }, t) => values[t]! / limitMs));
  let best = 0;
  for (const [i, [point]] of points.entries()) {
    if (worst(point!.values) < worst(points[best]![0]!.values)) best = i;
  }
  return { candidate: tried[best]!.candidate, load: LEAST_LOAD, values: points[best]![0]!.values };
}

function frontPoints(
  profile: EngineProfile,
  traffic: Traffic,
  choices: readonly SearchedCandidate[],
  atLoads: readonly (readonly LoadPoint[])[],
  slo: readonly SloTerm[],
  referenceLoad: number,
): FrontPoint[] {
  const points = choices.map(({ candidate, points: found }, i) => {
    const at = atLoads[i]!.find(({ load }) => load === referenceLoad)!;
    const all = [...found, ...atLoads[i]!].sort((a, b) => a.load - b.load);
    const sustained = requestRate(traffic) * sustainedLoad(all, slo);
    return {
      ...{ candidate, sustained, ttftP99Ms: at.ttftP99Ms, tpotP99Ms: at.tpotP99Ms },
      quality: profile.weights[candidate.weights]!.quality,
      usdPerMillionTokens: usdPerMillionTokens(profile, traffic, sustained),
    };
  });
  // Ratios by which a is better than b; what is within `ALIKE` is no difference.
  const isBetter = (a: (typeof points)[number], b: (typeof points)[number]) => {
    const ratios = [
      a.sustained / Math.max(1e-9, b.sustained),
      b.ttftP99Ms / a.ttftP99Ms,
      b.tpotP99Ms / a.tpotP99Ms,
      a.quality / b.quality,
    ];
    return ratios.every((ratio) => ratio >= 1) && ratios.some((ratio) => ratio > ALIKE);
  };
  return points.map((point) => ({ ...point, onFront: !points.some((other) => isBetter(other, point)) }));
}

function curveOf({ heldOutPoints }: Finalist, traffic: Traffic, slo: readonly SloTerm[]): LoadCurvePoint[] {
  const rate = requestRate(traffic);
  return heldOutPoints.map((point) => ({
    rate: rate * point.load,
    sloUse: sloUse(point, slo),
    good: goodShare(point),
  }));
}

function goodShare({ requests, goodEven, goodOdd }: LoadPoint): number {
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  return (sum(goodEven) + sum(goodOdd)) / sum(requests);
}

function usdPerMillionTokens(profile: EngineProfile, { trace }: Traffic, rate: number): number | null {
  if (rate === 0) return null;
  let tokens = 0;
  for (const each of trace.outputTokens) tokens += each;
  const perHour = profile.gpu.count * profile.gpu.usdPerHour;
  return (perHour / (rate * 3600 * (tokens / trace.outputTokens.length))) * 1e6;
}

/** The most engines that pairs can be made of. */
function evenFor({ split }: Candidate, most: number): number {
  return split ? 2 * Math.floor(most / 2) : most;
}

const NOTHING: Deployment = { load: 1, replicas: null, good: 0, usdPerHour: null };

/** The parts of a result that there are none of when the SLO is impossible. */
const EMPTY = {
  candidates: [],
  prediction: { low: 0, high: 0 },
  isConfirmed: false,
  referenceRate: 0,
  front: [],
  curves: { winner: [], defaults: [] },
  deployment: NOTHING,
  surge: NOTHING,
  surgeWithoutMore: 0,
  controller: { load: 0, fixed: 0, clairvoyant: 0, gain: 0, interval: { low: 0, high: 0 }, blocks: 0 },
} as const;
