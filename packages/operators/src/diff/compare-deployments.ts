import { fittedLoad, type MeasuredLoad } from '@servegym/profiles';
import type { Trace } from '@servegym/simulator';
import { counted } from '@servegym/simulator';
import { blockResamples, type IntervalEnds, percentileInterval } from '@servegym/simulator/statistics';
import { z } from 'zod';
import type { Deployment } from '../deployment/deployment.ts';
import * as part from '../report/result.ts';
import { engineUsd } from '../search/candidate.ts';
import { serveTraffic } from '../search/load-point.ts';
import { errorOf, errorOfRatio, profileError, widened } from '../search/profile-error.ts';
import { type SloTerm, sloTermText } from '../search/slo.ts';
import type { Traffic } from '../search/traffic.ts';

/** A latency, or the share of requests within every bound, before and after. */
const comparedFigure = z.object({
  name: z.string(),
  /** ms; for the share of the requests, 0..1. */
  baseline: part.number,
  candidate: part.number,
  /** Candidate over baseline, with its 95 % interval. */
  ratio: part.number,
  interval: part.interval,
  verdict: z.enum(['better', 'worse', 'too close to tell']),
});
export type ComparedFigure = z.input<typeof comparedFigure>;
export type ChangeVerdict = ComparedFigure['verdict'];

const comparedBound = comparedFigure.extend({
  limitMs: part.number,
  /**
   * `breaks`: the baseline keeps the bound and the candidate does not; `mends`: the other way round; `holds` and
   * `broken`: both alike; `too close to tell`: the bound lies within the interval of one of them, or within the profile's
   * error.
   */
  bound: z.enum(['holds', 'breaks', 'mends', 'broken', 'too close to tell']),
});
type ComparedBound = z.input<typeof comparedBound>;

const common = {
  trace: z.string(),
  requests: part.number,
  bounds: part.list(comparedBound),
  figures: part.list(comparedFigure),
  /** Summary in words. */
  verdict: z.string(),
};
const deployment = z.object({
  refused: part.refused.optional(),
  name: z.string(),
  profile: part.profile,
  engines: part.number,
  notSimulated: part.list(z.string()),
  version: z.string().optional(),
  evidence: z.string().optional(),
});
const simulated = z.object({
  ...common,
  ...{ baseline: deployment, candidate: deployment },
  usdPerHour: z.object({ baseline: part.number, candidate: part.number }),
  /** Error that both profiles add to ratios of TPOT and E2E, share; 0 where one law times both. */
  profileError: part.number,
  /** Flags of one side alone that are not simulated, where all that is simulated is equal; an engine without times. */
  untold: part.list(z.string()),
});
/** A load that a server served: answered requests, and those that failed. */
const load = z.object({ name: z.string(), requests: part.number, failed: part.number });
const measured = z.object({ ...common, baseline: load, candidate: load });
export type DeploymentDiff = z.input<typeof simulated> & {
  readonly baseline: Deployment;
  readonly candidate: Deployment;
};
export type MeasuredDiff = z.input<typeof measured>;
/** The object that `diff --json` prints. Latencies in ms. */
export const diffJson = part.jsonOf(z.union([simulated, measured]));

/** A smaller change is neither better nor worse, even where it is certain: a choice. */
const LEAST_CHANGE = 0.01;

type Metric = SloTerm['metric'];
/** Figures that are compared beside the bounds; `null` is the mean. */
const FIGURES: readonly (readonly [name: string, metric: Metric, quantile: number | null])[] = [
  ['TTFT p50', 'ttft', 0.5],
  ['TTFT p99', 'ttft', 0.99],
  ['TPOT p50', 'tpot', 0.5],
  ['TPOT p99', 'tpot', 0.99],
  ['E2E p99', 'e2e', 0.99],
];

/** Serves the same requests, with the same draws, on both, and says what changes. Intervals hold blocks of the traffic and errors of laws. */
export function compareDeployments(
  baseline: Deployment,
  candidate: Deployment,
  traffic: Traffic,
  slo: readonly SloTerm[],
  seed: number,
): DeploymentDiff {
  const serve = (load: number): Pair => [
    servedBy(baseline, traffic, { load, seed }),
    servedBy(candidate, traffic, { load, seed }),
  ];
  const [from, to] = [baseline, candidate].map(({ profile, engine, settings: { weights } }) => {
    const { name, version } = profile.engine;
    const started = { ...profile, engine: { ...profile.engine, name: engine ?? name } };
    const error = profileError(started, weights);
    // Fits to measurements of their own err by themselves.
    const of = profile.weights[weights]!.status === 'measured' ? profile.name : version;
    return { kernels: `${engine ?? name} ${of}`, law: `${profile.name} ${weights}`, error };
  });
  const isOneEngine = from.kernels === to.kernels;
  // One law times both: its error is in both.
  const isSame = isOneEngine && from.law === to.law;
  const { share } = from.error;
  const ratioError = (metric: Metric) =>
    isSame ? 0 : errorOfRatio([from.error, to.error], metric, isOneEngine);
  const { bounds, figures } = compareServed(serve(1), slo, seed, {
    // Times that are longer by a factor are the same as arrivals that are closer by it.
    offTimes: isSame ? [1 - share, 1 + share].map(serve) : [],
    ratioError,
    boundError: (side, metric) => errorOf([from, to][side].error, metric),
  });
  const refuses = refusedMore({ baseline, candidate });
  const untold = untoldFlags(baseline, candidate);
  const latencies =
    untold.length > 0
      ? `cannot be told, as it is not simulated: what changes with ${untold.join('; ')}`
      : verdictOf(bounds, figures);
  return {
    trace: traffic.trace.source,
    requests: traffic.trace.arrivalMs.length,
    ...{ baseline, candidate, bounds, figures },
    usdPerHour: { baseline: usdPerHour(baseline), candidate: usdPerHour(candidate) },
    ...{ profileError: ratioError('e2e'), untold },
    verdict: refuses > 0 ? `refuses ${counted(refuses, 'request')} more. ${latencies}` : latencies,
  };
}

function untoldFlags(baseline: Deployment, candidate: Deployment): string[] {
  // A profile of another engine, whose times say little of this one.
  const isGuessed = ({ engine, profile, settings: { weights } }: Deployment) =>
    (engine ?? profile.engine.name) !== profile.engine.name &&
    (profile.weights[weights]!.status === 'estimated' || (profile.parallel?.expert ?? 1) > 1);
  if (isGuessed(baseline) !== isGuessed(candidate)) {
    const { profile } = isGuessed(baseline) ? baseline : candidate;
    const kernels = (profile.parallel?.expert ?? 1) > 1 ? 'kernels of divided experts' : 'kernels';
    return [`the ${kernels}, which a profile of ${profile.engine.name} does not have of another engine`];
  }
  const simulated = ({ profile, settings, engines, router, kvBlocks, refused }: Deployment) =>
    JSON.stringify([profile, settings, engines, router, kvBlocks, refused]);
  if (simulated(baseline) !== simulated(candidate)) return [];
  const [before, after] = [baseline.notSimulated, candidate.notSimulated];
  return [
    ...before.filter((flag) => !after.includes(flag)),
    ...after.filter((flag) => !before.includes(flag)),
  ];
}

/**
 * Compares two loads that servers or gateways served, request by request, such as those of two configurations of a router.
 * Intervals are over stretches of the requests in order of arrival: those of one run say nothing of chance between runs.
 */
export function compareMeasured(
  baseline: MeasuredLoad,
  candidate: MeasuredLoad,
  slo: readonly SloTerm[],
  seed: number,
): MeasuredDiff {
  const sides: Pair = [servedAs(baseline), servedAs(candidate)];
  const { bounds, figures } = compareServed(sides, slo, seed, {
    ...{ offTimes: [], ratioError: () => 0, boundError: () => 0 },
  });
  const fails = candidate.failed - baseline.failed;
  const latencies = verdictOf(bounds, figures);
  const load = ({ source, requests, failed }: MeasuredLoad) => ({
    ...{ name: source, requests: requests.length, failed },
  });
  return {
    ...{ trace: 'measured', requests: baseline.requests.length, bounds, figures },
    ...{ baseline: load(baseline), candidate: load(candidate) },
    verdict: fails > 0 ? `${counted(fails, 'request')} more failed. ${latencies}` : latencies,
  };
}

type Pair = readonly [baseline: Served, candidate: Served];

/** @param off candidate beside baseline where all times are shorter and longer, and errors of ratios and of latencies */
function compareServed(
  served: Pair,
  slo: readonly SloTerm[],
  seed: number,
  off: {
    readonly offTimes: readonly Pair[];
    ratioError(metric: Metric): number;
    boundError(side: number, metric: Metric): number;
  },
) {
  const blocks = Math.min(served[0].blocks, served[1].blocks);
  const resamples = blockResamples(blocks, seed);
  const sample = (of: (one: Served, weights?: ArrayLike<number>) => number): Sample => ({
    values: [of(served[0]), of(served[1])],
    draws: [
      resamples.map((weights) => of(served[0], weights)),
      resamples.map((weights) => of(served[1], weights)),
    ],
    offTimes: off.offTimes.map(([before, after]) => ratioOf(of(after), of(before))),
  });
  const known = new Map<string, Sample>();
  const latency = (metric: Metric, quantile: number | null): Sample => {
    const key = `${metric} ${quantile}`;
    const found = known.get(key) ?? sample((one, weights) => one.value(metric, quantile, weights));
    known.set(key, found);
    return found;
  };
  const compare = (name: string, { values, draws, offTimes }: Sample, metric: Metric, rises = false) => {
    const error = off.ratioError(metric);
    const drawn = percentileInterval(draws[1].map((after, i) => ratioOf(after, draws[0][i])));
    const interval = {
      low: Math.min(drawn.low * (1 - error), ...offTimes),
      high: Math.max(drawn.high * (1 + error), ...offTimes),
    };
    const ratio = ratioOf(values[1], values[0]);
    const verdict = changeVerdict(ratio, interval, rises);
    return { name, baseline: values[0], candidate: values[1], ratio, interval, verdict };
  };
  const bounds = slo.map((term): ComparedBound => {
    const { limitMs } = term;
    const found = latency(term.metric, term.quantile);
    const [before, after] = found.draws.map((draws, i) => {
      const { low, high } = widened(percentileInterval(draws), off.boundError(i, term.metric));
      return high <= limitMs ? 'holds' : low > limitMs ? 'broken' : null;
    });
    return { ...compare(sloTermText(term), found, term.metric), limitMs, bound: boundVerdict(before, after) };
  });
  const good = sample((one, weights) => one.goodShare(slo, weights));
  const figures = [
    ...FIGURES.map(([name, metric, quantile]) => compare(name, latency(metric, quantile), metric)),
    compare('requests within every bound', good, 'e2e', true),
  ];
  return { bounds, figures };
}

/** `null` where it cannot be told whether a bound holds. */
type BoundState = 'holds' | 'broken' | null;

function boundVerdict(before: BoundState, after: BoundState): ComparedBound['bound'] {
  if (before === null || after === null) return 'too close to tell';
  if (before === after) return before;
  return after === 'broken' ? 'breaks' : 'mends';
}

/** Requests that the candidate refuses for their length and the baseline takes. */
function refusedMore({ baseline, candidate }: Pick<DeploymentDiff, 'baseline' | 'candidate'>): number {
  return (candidate.refused?.requests ?? 0) - (baseline.refused?.requests ?? 0);
}

/** Summary of the comparison. */
function verdictOf(bounds: readonly ComparedBound[], figures: readonly ComparedFigure[]): string {
  const of = (verdict: string) => bounds.filter(({ bound }) => bound === verdict).map(({ name }) => name);
  const worse = bounds.filter(({ bound, verdict }) => bound === 'broken' && verdict === 'worse');
  const parts = [
    ['breaks', of('breaks')],
    ['was broken and gets worse', worse.map(({ name }) => name)],
    ['cannot be told', of('too close to tell')],
    ['mends', of('mends')],
    ['broken before and after', of('broken').filter((name) => !worse.some((each) => each.name === name))],
  ] as const;
  const said = parts
    .filter(([, names]) => names.length > 0)
    .map(([verb, names]) => `${verb}: ${names.join(', ')}`);
  if (said.length > 0) return said.join('. ');
  const changed = figures.filter(({ verdict }) => verdict !== 'too close to tell');
  return changed.length === 0
    ? 'every bound holds, and no difference can be told'
    : `every bound holds; ${changed.map(({ name, verdict }) => `${name} ${verdict}`).join(', ')}`;
}

/** Verdict on a ratio of a figure that is better when it falls, or with `rises` when it rises. */
export function changeVerdict(ratio: number, { low, high }: IntervalEnds, rises = false): ChangeVerdict {
  const isSure = (low > 1 || high < 1) && Math.abs(ratio - 1) >= LEAST_CHANGE;
  return !isSure ? 'too close to tell' : ratio > 1 === rises ? 'better' : 'worse';
}

function usdPerHour({ profile, engines }: Deployment): number {
  return engines * engineUsd(profile);
}

function ratioOf(after: number, before: number): number {
  return before === after ? 1 : after / before;
}

/** A figure of both deployments: on the traffic, and on each resample of it. */
interface Sample {
  readonly values: readonly [number, number];
  readonly draws: readonly [readonly number[], readonly number[]];
  /** Candidate over baseline where one profile has both and its times are shorter, and longer, by its error. */
  readonly offTimes: readonly number[];
}

type Latencies = Readonly<Record<Metric, Float64Array>>;

/** The traffic on a deployment; requests that are not served have infinite latencies. */
function servedBy(
  { profile, settings, engines, router, kvBlocks }: Deployment,
  traffic: Traffic,
  at: { readonly load: number; readonly seed: number },
): Served {
  const run = serveTraffic(profile, settings, traffic, { ...at, replicas: engines, router, kvBlocks });
  const placed = (values: Float64Array) => {
    const all = new Float64Array(traffic.trace.arrivalMs.length).fill(Number.POSITIVE_INFINITY);
    for (let i = 0; i < run.completed; i++) all[run.ids[i]] = values[i];
    return all;
  };
  const latencies = { ttft: placed(run.ttftMs), tpot: placed(run.tpotMs), e2e: placed(run.e2eMs) };
  return new Served(latencies, traffic.blockStarts);
}

/** A load that was measured. */
function servedAs(load: MeasuredLoad): Served {
  const { trace, measured } = fittedLoad(load);
  const { ttftMs: ttft, tpotMs, e2eMs: e2e } = measured;
  // A request of one token has no TPOT.
  const tpot = tpotMs.map((ms) => (Number.isFinite(ms) ? ms : Number.NaN));
  return new Served({ ttft, tpot, e2e }, blocksOf(trace).blockStarts);
}

/** Latencies of requests. */
class Served {
  readonly blocks: number;
  readonly #latencies: Latencies;
  /** Requests by latency, shortest first. Without those that have none. */
  readonly #order: Readonly<Record<Metric, Int32Array>>;
  readonly #blockOf: Int32Array;

  constructor(latencies: Latencies, blockStarts: readonly number[]) {
    this.#latencies = latencies;
    const ordered = (values: Float64Array) =>
      Int32Array.from(values.keys())
        .filter((id) => !Number.isNaN(values[id]))
        .sort((a, b) => values[a] - values[b] || a - b);
    const { ttft, tpot, e2e } = latencies;
    this.#order = { ttft: ordered(ttft), tpot: ordered(tpot), e2e: ordered(e2e) };
    this.blocks = blockStarts.length - 1;
    this.#blockOf = new Int32Array(ttft.length);
    for (let b = 0; b < this.blocks; b++) this.#blockOf.fill(b, blockStarts[b], blockStarts[b + 1]);
  }

  /** Quantile, or mean, of a latency. @param weights how often each block counts; default once */
  value(metric: Metric, quantile: number | null, weights?: ArrayLike<number>): number {
    const values = this.#latencies[metric];
    const order = this.#order[metric];
    const weightOf = (id: number) => (weights === undefined ? 1 : weights[this.#blockOf[id]]);
    let total = 0;
    let sum = 0;
    for (const id of order) {
      const weight = weightOf(id);
      if (weight === 0) continue;
      total += weight;
      sum += weight * values[id];
    }
    if (quantile === null) return total === 0 ? 0 : sum / total;
    const rank = Math.max(1, Math.ceil(quantile * total));
    let below = 0;
    for (const id of order) {
      below += weightOf(id);
      if (below >= rank) return values[id];
    }
    return 0;
  }

  goodShare(slo: readonly SloTerm[], weights?: ArrayLike<number>): number {
    let good = 0;
    let total = 0;
    for (let id = 0; id < this.#blockOf.length; id++) {
      const weight = weights === undefined ? 1 : weights[this.#blockOf[id]];
      total += weight;
      // A request of one token has no TPOT.
      if (slo.every(({ metric, limitMs }) => !(this.#latencies[metric][id] > limitMs))) good += weight;
    }
    return good / total;
  }
}

/** `no` where the candidate breaks a bound, makes a broken one worse, or refuses or fails more requests; `undecided` where that cannot be told of one, or of a flag. */
export function diffAnswer(diff: DeploymentDiff | MeasuredDiff): 'yes' | 'no' | 'undecided' {
  const { bounds } = diff;
  const loses = 'usdPerHour' in diff ? refusedMore(diff) : diff.candidate.failed - diff.baseline.failed;
  if (
    loses > 0 ||
    bounds.some(({ bound, verdict }) => bound === 'breaks' || (bound === 'broken' && verdict === 'worse'))
  ) {
    return 'no';
  }
  const isUntold = 'untold' in diff && diff.untold.length > 0;
  return isUntold || bounds.some(({ bound }) => bound === 'too close to tell') ? 'undecided' : 'yes';
}

/** The first requests of a trace, as one stretch of equally long blocks. */
export function blocksOf(trace: Trace): Traffic {
  const requests = trace.arrivalMs.length;
  const blocks = Math.min(BLOCKS, requests);
  return {
    trace,
    blockStarts: Array.from({ length: blocks + 1 }, (_, b) => Math.floor((b * requests) / blocks)),
  };
}

/** Units of the statistics. */
const BLOCKS = 40;
