import type { EngineProfile, IterationLaw, WeightPrecision } from '../profiles/engine-profile.ts';
import { weightVariant } from '../profiles/kv-pool.ts';
import { simulateTrace } from '../simulation/simulate-trace.ts';
import { mean } from '../statistics/mean.ts';
import { summarize } from '../statistics/summary.ts';
import { CalibrationError } from './calibration-error.ts';
import { determinedShares } from './fit-law.ts';
import { type FittedLoad, fittedLoad, parts, type Times, timesOf } from './fitted-load.ts';
import { coefficientOf, coefficientsOf, type LawCoefficient, mapLaw, roundLaw } from './law-coefficients.ts';
import { leastSquares } from './least-squares.ts';
import { gapsOf } from './load-gaps.ts';
import { concurrencyOf, type MeasuredLoad, mostOf } from './measured-load.ts';

/** What a fit to served loads moves: the law, and the time before a request is scheduled. */
export type BenchParameter = LawCoefficient | 'requestOverheadMs';

/** How far each may well lie from the profile that the fit starts from, relative. */
const START_SPREAD: Readonly<Record<BenchParameter, number>> = {
  baseUs: 0.7,
  weightReadUs: 0.15,
  experts: 0.3,
  perTokenUs: 0.3,
  perDecodeSequenceUs: 4,
  perContextTokenNs: 0.4,
  manySequences: 0.7,
  perContextTokenBesidePrefillNs: 0.4,
  perPrefillAttentionNs: 0.4,
  requestOverheadMs: 1,
};
/** Errors that the mean of a group of requests has when all is well described, relative. Each request is in three. */
const TTFT_SPREAD = 0.09;
const TPOT_SPREAD = 0.026;
/** Requests behind one residual, at least; fewer say little about a mean. */
const LEAST_IN_GROUP = 5;
const FOLDS_OF_ONE_LOAD = 4;
/** Fewer requests than this only repeat the profile that the fit starts from. */
const LEAST_REQUESTS = 20;
const JITTER_STEPS = 10;
/** Without this much less error in the p99 of TTFT there is no jitter, relative. */
const WORTH_JITTER = 0.05;
/** A coefficient does not fall below this share of what is expected of it. */
const LEAST_SHARE = 0.01;
/** What an overhead is measured in that is expected to be nothing. */
const LEAST_OVERHEAD_MS = 1;
/** Step of the finite differences, relative: well above what a few requests in other iterations change. */
const DIFFERENCE = 0.2;
/** Short first steps: far from the solution the queue makes latencies anything but linear. */
const DAMPING = 1;

export interface BenchOptions {
  /** Where the fit starts, and what it keeps where the loads say nothing: an estimated profile, or an older one. */
  readonly start: EngineProfile;
  /** Precision of the weights that were served. Default `FP16`. */
  readonly weights?: WeightPrecision;
  /** As the server was started. Defaults 256, 2048, and what the profile's memory leaves. */
  readonly maxNumSeqs?: number;
  readonly maxNumBatchedTokens?: number;
  readonly kvBlocks?: number;
  /** What the profile says about where its measurements come from. */
  readonly source: string;
  /** The command that repeats the calibration, for the profile. */
  readonly command: string;
}

/** Relative errors of means, percent, positive when the simulator says more. */
export interface BenchErrors {
  readonly ttft: number;
  readonly tpot: number;
  readonly e2e: number;
}

/** Requests that are left out together: a load, or a stretch of the only load. */
export interface BenchFold {
  readonly name: string;
  readonly requests: number;
  readonly measuredMs: BenchErrors;
  readonly errors: BenchErrors;
  /** The same by a fit that has not seen these requests. */
  readonly leftOut: BenchErrors;
}

export interface BenchCalibration {
  readonly profile: EngineProfile;
  readonly weights: WeightPrecision;
  readonly folds: readonly BenchFold[];
  readonly failed: number;
  readonly determined: Readonly<Partial<Record<BenchParameter, number>>>;
  /** What the loads lack to tell coefficients apart, in sentences. */
  readonly gaps: readonly string[];
  /** Latency of every request, ms. */
  readonly e2eMs: readonly { readonly measured: number; readonly predicted: number }[];
}

/** What is fitted at one point of the search. */
interface Candidate {
  readonly law: IterationLaw;
  readonly requestOverheadMs: number;
}

/**
 * Fits a profile to loads that a real server served: the coefficients of its law and the overhead of a request with
 * which the simulator gives the same mean TTFT and TPOT, for stretches of each load and for short and long requests.
 * Where the loads leave a coefficient open, the profile that the fit starts from decides.
 *
 * @throws {CalibrationError} for too few requests, or requests that the simulated pool cannot hold.
 */
export function calibrateBench(loads: readonly MeasuredLoad[], options: BenchOptions): BenchCalibration {
  const { start, weights = 'FP16' } = options;
  const requests = loads.reduce((sum, load) => sum + load.requests.length, 0);
  if (requests < LEAST_REQUESTS) {
    throw new CalibrationError(
      'CALIBRATION_ROWS',
      `expected at least ${LEAST_REQUESTS} requests that were answered, got ${requests}`,
    );
  }
  const fitted = loads.map(fittedLoad);
  const folds = foldsOf(fitted);
  const none: readonly ReadonlySet<number>[] = fitted.map(() => new Set());
  const { candidate, determined } = fit(fitted, none, options);
  const rounded: Candidate = {
    law: roundLaw(candidate.law),
    requestOverheadMs: Number(candidate.requestOverheadMs.toPrecision(4)),
  };
  const jitter = bestJitter(fitted, rounded, options);
  const times = fitted.map((load) => simulated(load, rounded, options));
  const assessed = folds.map(({ name, members }): BenchFold => {
    const others = fit(fitted, members, options, rounded).candidate;
    const unseen = fitted.map((load, l) => (members[l].size === 0 ? null : simulated(load, others, options)));
    const measuredMs = meansOver(
      members,
      fitted.map(({ measured }) => measured),
    );
    return {
      name,
      requests: members.reduce((sum, set) => sum + set.size, 0),
      measuredMs,
      errors: errorsOf(meansOver(members, times), measuredMs),
      leftOut: errorsOf(meansOver(members, unseen), measuredMs),
    };
  });
  const inFit = assessed.map(({ errors }) => Math.abs(errors.e2e));
  const heldOut = assessed.map(({ leftOut }) => Math.abs(leftOut.e2e));
  const { requestOverheadJitter: _, ...rest } = start;
  const profile: EngineProfile = {
    ...rest,
    status: 'measured',
    source: options.source,
    fit: {
      rows: requests,
      meanErrorPercent: hundredths(mean(inFit)),
      worstErrorPercent: hundredths(Math.max(...inFit)),
      heldOutMeanErrorPercent: hundredths(mean(heldOut)),
      heldOutWorstErrorPercent: hundredths(Math.max(...heldOut)),
      command: options.command,
    },
    validity: {
      batch: [1, mostOf(loads.flatMap(concurrencyOf))],
      contextTokens: [
        1,
        mostOf(loads.flatMap((load) => load.requests.map((r) => r.inputTokens + r.outputTokens))),
      ],
    },
    requestOverheadMs: rounded.requestOverheadMs,
    ...(jitter > 0 && { requestOverheadJitter: jitter }),
    weights: {
      ...start.weights,
      [weights]: {
        ...weightVariant(start, weights),
        law: rounded.law,
        status: 'measured' as const,
        source: options.source,
      },
    },
  };
  return {
    profile,
    weights,
    folds: assessed,
    failed: loads.reduce((sum, { failed }) => sum + failed, 0),
    determined,
    gaps: gapsOf(loads),
    e2eMs: fitted.flatMap(({ measured }, l) =>
      Array.from(measured.e2eMs, (ms, i) => ({ measured: ms, predicted: times[l].e2eMs[i] })),
    ),
  };
}

function fit(
  loads: readonly FittedLoad[],
  leftOut: readonly ReadonlySet<number>[],
  options: BenchOptions,
  from?: Candidate,
): { candidate: Candidate; determined: BenchCalibration['determined'] } {
  const { start, weights = 'FP16' } = options;
  const law = weightVariant(start, weights).law;
  // Times are about linear in the coefficients: each in units of what is expected of it. One of nothing stays that.
  const names = coefficientsOf(law).filter((name) => coefficientOf(law, name)! > 0);
  const fittedNames: BenchParameter[] = [...names, 'requestOverheadMs'];
  const spread = fittedNames.map((name) => START_SPREAD[name]);
  const overheadUnit = Math.max(start.requestOverheadMs, LEAST_OVERHEAD_MS);
  const parametersOf = (candidate: Candidate) => [
    ...names.map((name) => coefficientOf(candidate.law, name)! / coefficientOf(law, name)!),
    candidate.requestOverheadMs / overheadUnit,
  ];
  const expected = parametersOf({ law, requestOverheadMs: start.requestOverheadMs });
  const at = (parameters: readonly number[]): Candidate => ({
    law: mapLaw(law, (value, name) =>
      value > 0 ? value * Math.max(LEAST_SHARE, Math.abs(parameters[names.indexOf(name)])) : value,
    ),
    requestOverheadMs: Math.abs(parameters[names.length] * overheadUnit),
  });
  const groups = loads.map(({ groups }, l) =>
    groups.map((group) => group.filter((i) => !leftOut[l].has(i))).filter((g) => g.length >= LEAST_IN_GROUP),
  );
  const { parameters, curvature } = leastSquares(
    (values) => [
      ...loads.flatMap((load, l) =>
        groups[l].length === 0 ? [] : residuals(load, groups[l], at(values), options),
      ),
      ...values.map((value, i) => (value - expected[i]) / spread[i]),
    ],
    from === undefined ? expected : parametersOf(from),
    { difference: DIFFERENCE, tolerance: 1e-4, damping: from === undefined ? DAMPING : undefined },
  );
  return { candidate: at(parameters), determined: determinedShares(fittedNames, spread, curvature) };
}

function residuals(
  load: FittedLoad,
  groups: readonly (readonly number[])[],
  candidate: Candidate,
  options: BenchOptions,
): number[] {
  const times = simulated(load, candidate, options);
  return groups.flatMap((group) => {
    const ttft = Math.log(meanOf(times.ttftMs, group) / meanOf(load.measured.ttftMs, group)) / TTFT_SPREAD;
    const tpot = Math.log(meanOf(times.tpotMs, group) / meanOf(load.measured.tpotMs, group)) / TPOT_SPREAD;
    return Number.isFinite(tpot) ? [ttft, tpot] : [ttft];
  });
}

function simulated(
  { load, trace }: FittedLoad,
  { law, requestOverheadMs }: Candidate,
  { start, weights = 'FP16', maxNumSeqs, maxNumBatchedTokens, kvBlocks }: BenchOptions,
  requestOverheadJitter = 0,
): Times {
  const variant = { ...weightVariant(start, weights), law };
  const run = simulateTrace(trace, {
    profile: { ...start, requestOverheadMs, requestOverheadJitter, weights: { [weights]: variant } },
    weights,
    maxNumSeqs,
    maxNumBatchedTokens,
    kvBlocks,
  });
  if (run.rejected > 0) {
    throw new CalibrationError(
      'CALIBRATION_ROWS',
      `${load.source}: expected every request to fit the KV pool, as it did on the server, got ${run.rejected} that do not fit its ${run.kvBlocks} blocks; say how many it had`,
    );
  }
  const times = timesOf(trace.arrivalMs.length);
  for (const [at, id] of run.ids.entries()) {
    times.ttftMs[id] = run.ttftMs[at];
    times.tpotMs[id] = run.tpotMs[at];
    times.e2eMs[id] = run.e2eMs[at];
  }
  return times;
}

/** The share of the overhead that varies with which the p99 of TTFT comes nearest. */
function bestJitter(loads: readonly FittedLoad[], candidate: Candidate, options: BenchOptions): number {
  const errors = Array.from({ length: JITTER_STEPS + 1 }, (_, step) =>
    loads.reduce((sum, load) => {
      const { ttftMs } = simulated(load, candidate, options, step / JITTER_STEPS);
      return sum + Math.abs(Math.log(summarize(ttftMs).p99 / summarize(load.measured.ttftMs).p99));
    }, 0),
  );
  const least = Math.min(...errors);
  return errors[0] - least < WORTH_JITTER * loads.length ? 0 : errors.indexOf(least) / JITTER_STEPS;
}

/** What is left out at a time: each load, or stretches of the only one. `members`: by load, its requests. */
function foldsOf(loads: readonly FittedLoad[]): { name: string; members: readonly ReadonlySet<number>[] }[] {
  if (loads.length > 1) {
    return loads.map(({ load, trace }, left) => ({
      name: load.source,
      members: loads.map((_, l) => new Set(l === left ? trace.arrivalMs.keys() : [])),
    }));
  }
  const all = [...loads[0].trace.arrivalMs.keys()];
  return parts(all, FOLDS_OF_ONE_LOAD).map((part, i) => ({
    name: `part ${i + 1} of ${FOLDS_OF_ONE_LOAD}`,
    members: [new Set(part)],
  }));
}

function meansOver(members: readonly ReadonlySet<number>[], times: readonly (Times | null)[]): BenchErrors {
  const means = (of: (times: Times) => Float64Array) =>
    mean(
      members
        .flatMap((set, l) => [...set].map((i) => of(times[l]!)[i]!))
        .filter((value) => Number.isFinite(value)),
    );
  return {
    ttft: means(({ ttftMs }) => ttftMs),
    tpot: means(({ tpotMs }) => tpotMs),
    e2e: means(({ e2eMs }) => e2eMs),
  };
}

function errorsOf(simulatedMs: BenchErrors, measuredMs: BenchErrors): BenchErrors {
  const error = (what: keyof BenchErrors) => 100 * (simulatedMs[what] / measuredMs[what] - 1);
  return { ttft: error('ttft'), tpot: error('tpot'), e2e: error('e2e') };
}

function meanOf(values: Float64Array, indices: readonly number[]): number {
  return mean(indices.map((i) => values[i]).filter((value) => Number.isFinite(value)));
}

function hundredths(value: number): number {
  return Math.round(value * 100) / 100;
}
