import {
  type EngineProfile,
  type IterationLaw,
  RandomStream,
  simulateTrace,
  type WeightPrecision,
  weightVariant,
} from '@servegym/simulator';
import { mean, percentileOfSorted, sampleDeviation } from '@servegym/simulator/statistics';
import { inverse, Matrix } from 'ml-matrix';
import { ProfileError } from '../schema/read-json.ts';
import { coefficientOf, coefficientsOf, type LawCoefficient, likelySpreads, mapLaw } from './fit-law.ts';
import { leastSquares, robust, sumOfSquares } from './least-squares.ts';
import { type FittedLoad, type Times, timesOf } from './measured-load.ts';

/** Parameters that a fit to served loads moves: the law, and the time before a request is scheduled. */
export type BenchParameter = LawCoefficient | 'requestOverheadMs';

/**
 * Coefficients that follow another one: a GPU that is slow at matrix multiplication is slow at attention, and one that
 * reads weights slowly reads KV slowly. What is likely of them is their ratio in the start.
 */
const FOLLOWS: Partial<Record<BenchParameter, BenchParameter>> = {
  perPrefillAttentionNs: 'perTokenUs',
  perContextTokenNs: 'weightReadUs',
  manySequences: 'perContextTokenNs',
  perContextTokenBesidePrefillNs: 'perContextTokenNs',
};
/**
 * Most relative error of the law in the mean of many requests that counts; a second search takes the one that the groups
 * of all loads have under the first one's law.
 */
const MEAN_ERROR: Scatter = { ttft: 0.09, tpot: 0.026 };
const LEAST_MEAN_ERROR: Scatter = { ttft: 0.02, tpot: 0.006 };
/** Most relative scatter of one request that counts; a second search takes that of each load under the first one's law. */
const SCATTER: Scatter = { ttft: 0.25, tpot: 0.07 };
const LEAST_SCATTER = 0.02;
/** Spread of a server's speed from load to load, relative, where it changed: clocks, heat and neighbours. */
const SPEED_SPREAD = 0.05;
/** A coefficient does not fall below this share of its start. */
const LEAST_SHARE = 0.001;
/** Overhead in the unit of which one is measured whose start is nothing. */
const LEAST_OVERHEAD_MS = 1;
/** Percentage of requests that may be faster than a bound allows: clocks of clients are not perfect. */
const FASTEST_PERCENTILE = 5;
const BOUND_SLACK = 1.25;
/** Points that are looked at before a search, and those of them that one starts from. */
const LOOKED_AT = 48;
const STARTS = 4;
/** Starts lie between this share of a bound and the bound. */
const START_RANGE = 0.02;
/** Steps of the finite differences, in logarithms: wide at first, as requests that change iterations make steps. */
const DIFFERENCES = [0.1, 0.03];
const SEARCH = { tolerance: 1e-4, damping: 1 };
/**
 * Spread over what the curvature says: the 16 groups of a load share its requests and the errors of the law there, and
 * count as one.
 */
const REPEATED = 4;
/** Costs between which two searches count as ended at one place: what one spread of one parameter costs, and a share. */
const SAME_COST = 1;
const SAME_SHARE = 0.05;

/** Relative deviation of requests from the simulated ones. */
interface Scatter {
  readonly ttft: number;
  readonly tpot: number;
}

export interface LoadFitOptions {
  /** Start of the fit, and its result where the loads say nothing: an estimated profile, or an older one. */
  readonly start: EngineProfile;
  /** Precision of the weights that were served. Default `FP16`. */
  readonly weights?: WeightPrecision;
  /** As the server was started. Defaults 256, 2048, and what the profile's memory leaves. */
  readonly maxNumSeqs?: number;
  readonly maxNumBatchedTokens?: number;
  readonly kvBlocks?: number;
  /** Whether the server's speed may differ from load to load. Default false. */
  readonly speedVaries?: boolean;
  /** Factor on the spread of every coefficient, where the start is a guess. Default 1. */
  readonly startSpread?: number;
}

/** What a fit to served loads moves. */
type ServerTimes = Pick<EngineProfile, 'requestOverheadMs'> & { readonly law: IterationLaw };

/** One point of the search. */
export interface Candidate extends ServerTimes {
  /** Time of each load over that of the law: above 1 the server was slower than in the others. */
  readonly slowness: readonly number[];
}

export interface LoadFit extends Candidate {
  /** Relative spread of each parameter after the fit: two of them to either side are an interval of 95 %. */
  readonly spread: Readonly<Partial<Record<BenchParameter, number>>>;
  /** 1 - (spread after the fit / spread before it) of each parameter. */
  readonly determined: Readonly<Partial<Record<BenchParameter, number>>>;
  /** Sum of squared residuals. */
  readonly cost: number;
  /** Whether searches from different starts ended at the same cost. */
  readonly isConverged: boolean;
}

/**
 * The law and overhead with which the simulator gives the loads' mean TTFT and TPOT, for stretches of each load and for
 * short and long requests. Each residual counts in its own spread and loses weight where it is far off. Deterministic.
 *
 * Levenberg-Marquardt on the logarithms, within bounds, from several starts: queues make the cost anything but convex.
 *
 * @param leftOut Requests of each load that are not fitted; `null`: none.
 * @param starts Ends of other fits. Alone they make a short search; without any, the space is searched.
 */
export function fitLoads(
  loads: readonly FittedLoad[],
  leftOut: readonly ReadonlySet<number>[] | null,
  options: LoadFitOptions,
  starts: { readonly near?: readonly Candidate[]; readonly isShort?: boolean } = {},
): LoadFit {
  const space = fitSpace(loads, options);
  const residuals = loadResiduals(space, loads, leftOut, options);
  const { lower, upper } = space;
  const search = (from: readonly number[]) =>
    DIFFERENCES.reduce(
      ({ parameters: logs }, difference) =>
        leastSquares(residuals.at, logs, { ...SEARCH, difference, bounds: { lower, upper } }),
      { parameters: from, curvature: new Matrix(0, 0) },
    );
  const costAt = (logs: readonly number[]) => sumOfSquares(residuals.at(logs));
  const endsFrom = (froms: readonly (readonly number[])[]) => cheapestFirst(froms.map(search), costAt);
  const nearby = (starts.near ?? []).map(space.logsOf);
  const froms =
    starts.isShort === true ? nearby : [space.origin, ...nearby, ...promisingStarts(space, costAt)];
  const first = endsFrom(froms);
  residuals.weighBy(space.at(first[0].parameters));
  const ends = endsFrom(first.slice(0, STARTS).map(({ parameters }) => parameters));
  const [best, second] = ends;
  const isAsGood = ({ cost }: { readonly cost: number }) => cost <= best.cost * (1 + SAME_SHARE) + SAME_COST;
  const equals = ends.filter(isAsGood).map(({ parameters }) => parameters);
  return {
    ...space.at(best.parameters),
    cost: best.cost,
    isConverged: second === undefined || isAsGood(second),
    ...knowledgeOf(space, best.parameters, best.curvature, equals),
  };
}

type FitSpace = ReturnType<typeof fitSpace>;

/**
 * The parameters of a fit and the coordinates that a search moves: logarithms over the units of the parameters, and of
 * the slowness of each load.
 */
function fitSpace(
  loads: readonly FittedLoad[],
  { start, weights = 'FP16', startSpread = 1, speedVaries = false }: LoadFitOptions,
) {
  const law = weightVariant(start, weights).law;
  // A coefficient of nothing stays that.
  const names = coefficientsOf(law).filter((name) => coefficientOf(law, name)! > 0);
  const parameters: BenchParameter[] = [...names, 'requestOverheadMs'];
  const overheadUnit = Math.max(start.requestOverheadMs, LEAST_OVERHEAD_MS);
  const units = parameters.map((name) =>
    name === 'requestOverheadMs' ? overheadUnit : coefficientOf(law, name)!,
  );
  const most = mostByPhysics(loads);
  const upper = [
    ...parameters.map((name, i) => Math.log((most[name] ?? Number.POSITIVE_INFINITY) / units[i])),
    ...loads.map(() => (speedVaries ? Math.LN2 : 0)),
  ];
  const lower = upper.map((bound, i) =>
    i < parameters.length ? Math.min(bound, 0) + Math.log(LEAST_SHARE) : -upper[i],
  );
  const clamp = (logs: readonly number[]) =>
    logs.map((log, i) => Math.min(Math.max(log, lower[i]), upper[i]));
  const idle = idleCoordinates(parameters, units);
  const spreads = likelySpreads('loads');
  return {
    parameters,
    lower,
    upper,
    /** Coordinates of the start. */
    origin: clamp(upper.map(() => 0)),
    /** Logarithms of the parameters. */
    parametersAt: idle.to,
    logsOf: (candidate: Candidate): readonly number[] =>
      clamp(
        idle.from([
          ...parameters.map((name, i) => Math.log(Math.max(parameterOf(candidate, name), 1e-12) / units[i])),
          ...candidate.slowness.map(Math.log),
        ]),
      ),
    at(coordinates: readonly number[]): Candidate {
      const logs = idle.to(coordinates);
      return {
        law: mapLaw(law, (value, name) => (value > 0 ? value * Math.exp(logs[names.indexOf(name)]) : value)),
        requestOverheadMs: overheadUnit * Math.exp(logs[names.length]),
        slowness: logs.slice(parameters.length).map(Math.exp),
      };
    },
    /** Distances from the start, each in its spread. */
    priorAt(coordinates: readonly number[]): readonly number[] {
      const logs = idle.to(coordinates);
      return [
        ...parameters.map((name, i) => {
          const spread = spreads[name] * startSpread;
          const followed = FOLLOWS[name];
          const leader = followed === undefined ? -1 : parameters.indexOf(followed);
          const log = logs[i] - (leader < 0 ? 0 : logs[leader]);
          return spread >= 1 ? (Math.exp(log) - 1) / spread : log / Math.log1p(spread);
        }),
        ...logs.slice(parameters.length).map((log) => robust(log / SPEED_SPREAD)),
      ];
    },
  };
}

/** Deviations of simulated loads from the measured ones, each in its spread, and those of the candidate from the start. */
function loadResiduals(
  space: FitSpace,
  loads: readonly FittedLoad[],
  leftOut: readonly ReadonlySet<number>[] | null,
  options: LoadFitOptions,
) {
  const count = space.parameters.length;
  const groups = loads.map((load, l) =>
    load.groups.map((group) => group.filter((i) => !leftOut?.[l].has(i))).filter((group) => group.length > 0),
  );
  let scatter: readonly Scatter[] = loads.map(() => SCATTER);
  let meanError = MEAN_ERROR;
  // A step along the slowness of one load leaves the others as they were.
  let known: { key: string; residuals: readonly number[] }[] = [];
  const timesUnder = (candidate: Candidate, l: number) =>
    simulatedTimes(loads[l], candidate, options, { slowness: candidate.slowness[l] });
  const ofLoad = (coordinates: readonly number[], l: number): readonly number[] => {
    if (groups[l].length === 0) return [];
    const key = [...coordinates.slice(0, count), coordinates[count + l]].join();
    if (known[l]?.key !== key) {
      const times = timesUnder(space.at(coordinates), l);
      known[l] = { key, residuals: residuals(loads[l], groups[l], times, scatter[l], meanError) };
    }
    return known[l].residuals;
  };
  return {
    at: (coordinates: readonly number[]): readonly number[] => [
      ...loads.flatMap((_, l) => ofLoad(coordinates, l)),
      ...space.priorAt(coordinates),
    ],
    /** Weighs the residuals by the scatter and the errors that are left under a candidate. */
    weighBy(pilot: Candidate): void {
      const times = loads.map((_, l) => timesUnder(pilot, l));
      scatter = loads.map((load, l) => scatterOf(load, times[l]));
      // The errors that a fit leaves in fewer loads than it has parameters are not those of the law.
      if (loads.length > count)
        meanError = meanErrorOf(loads.flatMap((load, l) => groupErrors(load, groups[l], times[l])));
      known = [];
    },
  };
}

/** A parameter of a candidate, in its unit. */
export function parameterOf({ law, requestOverheadMs }: ServerTimes, name: BenchParameter): number {
  return name === 'requestOverheadMs' ? requestOverheadMs : coefficientOf(law, name)!;
}

/**
 * Times of a load's requests on the simulated server.
 * @param at Share of the overhead that varies, default 0; slowness of the server, default 1.
 */
export function simulatedTimes(
  { load, trace }: FittedLoad,
  { law, requestOverheadMs }: ServerTimes,
  { start, weights = 'FP16', maxNumSeqs, maxNumBatchedTokens, kvBlocks }: LoadFitOptions,
  { jitter = 0, slowness = 1 }: { readonly jitter?: number; readonly slowness?: number } = {},
): Times {
  const variant = { ...weightVariant(start, weights), law: mapLaw(law, (value) => slowness * value) };
  const run = simulateTrace(trace, {
    profile: {
      ...start,
      requestOverheadMs: slowness * requestOverheadMs,
      requestOverheadJitter: jitter,
      weights: { [weights]: variant },
    },
    weights,
    maxNumSeqs,
    maxNumBatchedTokens,
    kvBlocks,
  });
  if (run.rejected > 0) {
    const got = `${run.rejected} that do not fit its ${run.kvBlocks} blocks; say how many it had`;
    const expected = 'every request to fit the KV pool, as it did on the server';
    throw new ProfileError('CALIBRATION_ROWS', load.source, expected, got);
  }
  const times = timesOf(trace.arrivalMs.length);
  for (const [at, id] of run.ids.entries()) {
    times.ttftMs[id] = run.ttftMs[at];
    times.tpotMs[id] = run.tpotMs[at];
    times.e2eMs[id] = run.e2eMs[at];
  }
  return times;
}

/**
 * Mean relative error of single requests: the geometric mean of that of TTFT and that of the time after the first token.
 * Fits under different settings of a server compare by it.
 */
export function requestError(
  loads: readonly FittedLoad[],
  fit: ServerTimes,
  options: LoadFitOptions,
): number {
  const times = loads.map((load) => simulatedTimes(load, fit, options));
  const errorOf = (of: (times: Times, i: number) => number) =>
    mean(
      loads
        .flatMap(({ measured, trace }, l) =>
          Array.from(trace.arrivalMs, (_, i) => Math.abs(Math.log(of(times[l], i) / of(measured, i)))),
        )
        .filter(Number.isFinite),
    );
  return Math.sqrt(
    errorOf(({ ttftMs }, i) => ttftMs[i]) * errorOf(({ ttftMs, e2eMs }, i) => e2eMs[i] - ttftMs[i]),
  );
}

/** Logarithms of simulated over measured means of groups of requests: TTFT, and the time after the first token. */
function groupErrors({ measured }: FittedLoad, groups: readonly (readonly number[])[], times: Times) {
  return groups.map((group) => {
    const meanTtft = ({ ttftMs }: Times) => mean(group.map((i) => ttftMs[i]));
    // Over tokens and not over requests: the TPOT of a short answer is mostly scatter.
    const decode = ({ ttftMs, e2eMs }: Times) => mean(group.map((i) => e2eMs[i] - ttftMs[i]));
    return {
      ttft: Math.log(meanTtft(times) / meanTtft(measured)),
      /** `NaN` for a group without decodes. */
      tpot: Math.log(decode(times) / decode(measured)),
      requests: group.length,
    };
  });
}

function residuals(
  load: FittedLoad,
  groups: readonly (readonly number[])[],
  times: Times,
  scatter: Scatter,
  meanError: Scatter,
): number[] {
  const spread = (of: keyof Scatter, requests: number) =>
    Math.sqrt(meanError[of] ** 2 + scatter[of] ** 2 / requests);
  return groupErrors(load, groups, times).flatMap(({ ttft, tpot, requests }) => {
    const ofTtft = robust(ttft / spread('ttft', requests));
    return Number.isFinite(tpot) ? [ofTtft, robust(tpot / spread('tpot', requests))] : [ofTtft];
  });
}

/** Mean error of the groups, within what is likely of a law. */
function meanErrorOf(errors: ReturnType<typeof groupErrors>): Scatter {
  return eachScatter((what) => {
    const sizes = errors.map((error) => Math.abs(error[what])).filter(Number.isFinite);
    return Math.min(MEAN_ERROR[what], Math.max(LEAST_MEAN_ERROR[what], mean(sizes)));
  });
}

/**
 * Coordinates in which a search finds its way: loads tell the sum of `baseUs` and `weightReadUs`, the time of an idle
 * iteration, far better than each, so that the sum and their ratio take the places of the two. All are logarithms over
 * the units.
 */
function idleCoordinates(parameters: readonly BenchParameter[], units: readonly number[]) {
  const [base, read] = [parameters.indexOf('baseUs'), parameters.indexOf('weightReadUs')];
  if (base < 0 || read < 0) return { to: (x: readonly number[]) => x, from: (x: readonly number[]) => x };
  const ratio = units[read] / units[base];
  return {
    to(x: readonly number[]): readonly number[] {
      const log = x[base] + Math.log((1 + ratio) / (1 + ratio * Math.exp(x[read])));
      return x.with(base, log).with(read, log + x[read]);
    },
    from(logs: readonly number[]): readonly number[] {
      const apart = logs[read] - logs[base];
      return logs
        .with(base, logs[base] + Math.log((1 + ratio * Math.exp(apart)) / (1 + ratio)))
        .with(read, apart);
    },
  };
}

/** Scatter of a load's requests about the simulated ones. */
function scatterOf({ measured }: FittedLoad, times: Times): Scatter {
  return eachScatter((what) => {
    const [simulated, own] = [times[`${what}Ms`], measured[`${what}Ms`]];
    const logs = Array.from(simulated, (ms, i) => Math.log(ms / own[i])).filter(Number.isFinite);
    const deviation = logs.length < 2 ? SCATTER[what] : sampleDeviation(logs);
    return Math.min(SCATTER[what], Math.max(LEAST_SCATTER, deviation));
  });
}

function eachScatter(of: (what: keyof Scatter) => number): Scatter {
  return { ttft: of('ttft'), tpot: of('tpot') };
}

/** No part of an iteration takes longer than the fastest requests that it was a part of. */
function mostByPhysics(loads: readonly FittedLoad[]): Partial<Record<BenchParameter, number>> {
  const fastest = (of: (load: FittedLoad, i: number) => number) => {
    const values = loads
      .flatMap((load) => Array.from(load.measured.e2eMs, (_, i) => of(load, i)))
      // Tokens that reach a client together seem to take no time.
      .filter((value) => value > 0 && Number.isFinite(value));
    if (values.length === 0) return Number.POSITIVE_INFINITY;
    return BOUND_SLACK * percentileOfSorted(Float64Array.from(values).sort(), FASTEST_PERCENTILE);
  };
  const iterationUs = 1000 * fastest(({ measured }, i) => measured.tpotMs[i]);
  return {
    baseUs: iterationUs,
    weightReadUs: iterationUs,
    perDecodeSequenceUs: iterationUs,
    perContextTokenNs: 1e6 * fastest(({ measured, trace }, i) => measured.tpotMs[i] / trace.inputTokens[i]),
    perTokenUs: 1000 * fastest(({ measured, trace }, i) => measured.ttftMs[i] / trace.inputTokens[i]),
    perPrefillAttentionNs:
      1e6 * fastest(({ measured, trace }, i) => measured.ttftMs[i] / (trace.inputTokens[i] ** 2 / 2)),
    requestOverheadMs: fastest(({ measured }, i) => measured.ttftMs[i]),
  };
}

/** Points with the least cost of many that are spread over the space. */
function promisingStarts(
  { origin, lower, upper, parameters }: FitSpace,
  costAt: (logs: readonly number[]) => number,
): number[][] {
  const random = new RandomStream(0, 'load-fit');
  const points = Array.from({ length: LOOKED_AT }, () =>
    origin.map((log, i) => {
      if (i >= parameters.length) return log;
      const high = Math.min(upper[i], log + Math.log(4));
      const low = Math.max(lower[i], high + Math.log(START_RANGE));
      return low + random.uniform() * (high - low);
    }),
  );
  const ascending = cheapestFirst(
    points.map((parameters) => ({ parameters })),
    costAt,
  );
  return ascending.slice(0, STARTS).map(({ parameters }) => parameters);
}

function cheapestFirst<Point extends { readonly parameters: readonly number[] }>(
  points: readonly Point[],
  costAt: (parameters: readonly number[]) => number,
) {
  return points
    .map((point) => ({ ...point, cost: costAt(point.parameters) }))
    .sort((a, b) => a.cost - b.cost);
}

/** @param ends Coordinates that cost about as little as the best. */
function knowledgeOf(
  { parameters, priorAt, parametersAt }: FitSpace,
  best: readonly number[],
  curvature: Matrix,
  ends: readonly (readonly number[])[],
): Pick<LoadFit, 'spread' | 'determined'> {
  const difference = 1e-4;
  /** Derivatives by the coordinates, a row for each coordinate. */
  const slopes = (of: (coordinates: readonly number[]) => readonly number[]) => {
    const base = of(best);
    return new Matrix(
      best.map((log, i) =>
        of(best.with(i, log + difference)).map((value, row) => (value - base[row]) / difference),
      ),
    );
  };
  const prior = slopes(priorAt);
  const turn = slopes(parametersAt);
  const covariance = (curvature: Matrix) => turn.transpose().mmul(inverse(curvature)).mmul(turn);
  const before = covariance(prior.mmul(prior.transpose()));
  const after = covariance(curvature);
  const spreadOf = (covariance: Matrix, i: number) => Math.sqrt(Math.max(covariance.get(i, i), 0));
  const each = (of: (i: number) => number) => Object.fromEntries(parameters.map((name, i) => [name, of(i)]));
  const logs = parametersAt(best);
  const others = ends.map(parametersAt);
  return {
    // Ends that cost the same and differ show valleys that the curvature at one of them does not.
    spread: each((i) => {
      const apart = others.map((other) => Math.abs(other[i] - logs[i]));
      return Math.max(REPEATED * spreadOf(after, i), ...apart);
    }),
    determined: each((i) => Math.min(1, Math.max(0, 1 - spreadOf(after, i) / spreadOf(before, i)))),
  };
}
