import { type EngineProfile, weightVariant } from '@servegym/simulator';
import { mean, sampleDeviation, summarize } from '@servegym/simulator/statistics';
import type { CalibrationOptions } from './blank-profile.ts';
import { checkRows, fitErrors, roundLaw } from './fit-law.ts';
import { bestJitter, JITTERS } from './least-squares.ts';
import {
  type BenchParameter,
  type Candidate,
  fitLoads,
  type LoadFit,
  type LoadFitOptions,
  parameterOf,
  simulatedTimes,
} from './load-fit.ts';
import {
  concurrencyOf,
  type FittedLoad,
  fittedLoad,
  gapsOf,
  type MeasuredLoad,
  mostOf,
  parts,
  sentencesIf,
  type Times,
} from './measured-load.ts';

const FOLDS_OF_ONE_LOAD = 4;
/** Fewer requests than this only repeat the profile that the fit starts from. */
const LEAST_REQUESTS = 20;
/** Without this much less error in the p99 of TTFT there is no jitter, relative. */
const WORTH_JITTER = 0.05;
/** Ratio of the slowness of two loads above which they are said to contradict each other. */
const MOST_DRIFT = 1.05;
/** Ratio of two mean errors above which a fit is called worse than others. A choice: below it they are the same fit. */
const CLEARLY_WORSE = 1.05;
/** Error of the mean latency of a load above which a fit is doubted, percent. */
const LARGE_ERROR = 4;
/** A fit takes the place of another below this share of its cost. */
const WORTH_REFIT = 0.95;
/** The same for a fit in which the server's speed differs from load to load, where one without describes every load. */
const WORTH_SPEEDS = 0.85;

export type BenchOptions = LoadFitOptions & Pick<CalibrationOptions, 'source' | 'command'>;

/** Relative errors of means, percent, positive when the simulator says more. */
export type BenchErrors = Readonly<Record<'ttft' | 'tpot' | 'e2e', number>>;

/** Requests that are left out together: a load, or a stretch of the only load. */
interface BenchFold {
  readonly name: string;
  readonly requests: number;
  readonly measuredMs: BenchErrors;
  readonly errors: BenchErrors;
  /** The same by a fit that has not seen these requests. */
  readonly leftOut: BenchErrors;
  /** Time of the load over that of the profile, 1 for a stretch of a load. Above 1 the server was slower than in others. */
  readonly slowness: number;
}

/** Requests that are left out together, by load. */
interface Fold {
  readonly name: string;
  readonly members: readonly ReadonlySet<number>[];
}

export type BenchCalibration = ReturnType<typeof calibrateBench>;

/**
 * Fits a profile to loads that a real server served: the coefficients of its law and the overhead of a request with
 * which the simulator gives the same mean TTFT and TPOT, for stretches of each load and for short and long requests.
 * The profile that the fit starts from decides each coefficient that the loads leave open.
 *
 * @throws {ProfileError} for too few requests, or requests that the simulated pool cannot hold.
 */
export function calibrateBench(loads: readonly MeasuredLoad[], options: BenchOptions) {
  const { start, weights = 'FP16' } = options;
  const requests = loads.reduce((sum, load) => sum + load.requests.length, 0);
  checkRows(requests, LEAST_REQUESTS, 'requests that were answered');
  const fitted = loads.map(fittedLoad);
  const folds = foldsOf(fitted);
  const steady = fitAndLeaveOut(fitted, folds, options);
  const isOff = fitted.some((load) => {
    const { e2eMs } = simulatedTimes(load, steady.fit, options);
    return Math.abs(mean(e2eMs) / mean(load.measured.e2eMs) - 1) > LARGE_ERROR / 100;
  });
  const worth = isOff ? WORTH_REFIT : WORTH_SPEEDS;
  const { fit, others } =
    fitted.length === 1 ? steady : (fitOfChangingSpeed(fitted, folds, options, steady.fit, worth) ?? steady);
  const rounded: Candidate = {
    law: roundLaw(fit.law),
    requestOverheadMs: Number(fit.requestOverheadMs.toPrecision(4)),
    slowness: fit.slowness,
  };
  const jitter = jitterOf(fitted, rounded, options);
  const times = fitted.map((load) => simulatedTimes(load, rounded, options));
  const measured = fitted.map((load) => load.measured);
  const assessed = folds.map(({ name, members }, f): BenchFold => {
    const unseen = fitted.map((load, l) =>
      members[l].size === 0 ? null : simulatedTimes(load, others[f], options),
    );
    const measuredMs = meansOver(members, measured);
    return {
      name,
      requests: members.reduce((sum, set) => sum + set.size, 0),
      measuredMs,
      errors: errorsOf(meansOver(members, times), measuredMs),
      leftOut: errorsOf(meansOver(members, unseen), measuredMs),
      slowness: loads.length === 1 ? 1 : fit.slowness[f],
    };
  });
  const { requestOverheadJitter: _, ...rest } = start;
  const profile: EngineProfile = {
    ...rest,
    status: 'measured',
    source: options.source,
    fit: fitErrors(
      options.command,
      assessed.map(({ errors, leftOut }) => ({
        error: Math.abs(errors.e2e),
        heldOut: Math.abs(leftOut.e2e),
      })),
      requests,
    ),
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
    determined: fit.determined,
    /** Relative spread of each parameter: of the fit, and between fits with one load left out. */
    spread: jackknifed(fit, others),
    /** Gaps of the loads that leave coefficients undetermined, in sentences. */
    gaps: gapsOf(loads),
    /** Reasons to doubt the fit, in sentences. */
    warnings: warningsOf(assessed, fit.isConverged),
    /** Latency of every request, ms. */
    e2eMs: measured.flatMap(({ e2eMs }, l) =>
      Array.from(e2eMs, (ms, i) => ({ measured: ms, predicted: times[l].e2eMs[i] })),
    ),
  };
}

/** A fit to all, and for each fold one without it. Where the latter find a better one for all, it is taken. */
function fitAndLeaveOut(
  loads: readonly FittedLoad[],
  folds: readonly Fold[],
  options: LoadFitOptions,
  near: readonly Candidate[] = [],
): { fit: LoadFit; others: readonly LoadFit[] } {
  const without = (fit: Candidate) =>
    folds.map(({ members }) => fitLoads(loads, members, options, { near: [fit], isShort: true }));
  const fit = fitLoads(loads, null, options, { near });
  const others = without(fit);
  const again = fitLoads(loads, null, options, { near: others, isShort: true });
  return again.cost < WORTH_REFIT * fit.cost ? { fit: again, others: without(again) } : { fit, others };
}

/** The same with a speed of the server for each load; `null` when that is not worth it. */
function fitOfChangingSpeed(
  loads: readonly FittedLoad[],
  folds: readonly Fold[],
  options: LoadFitOptions,
  steady: LoadFit,
  worth: number,
): ReturnType<typeof fitAndLeaveOut> | null {
  const varying = { ...options, speedVaries: true };
  const near = fitLoads(loads, null, varying, { near: [steady], isShort: true });
  return near.cost < worth * steady.cost ? fitAndLeaveOut(loads, folds, varying, [near]) : null;
}

/** The spread of a fit, or that between fits with something left out where it is larger. */
function jackknifed(fit: LoadFit, others: readonly LoadFit[]): LoadFit['spread'] {
  const names = Object.keys(fit.spread) as BenchParameter[];
  return Object.fromEntries(
    names.map((name) => {
      const logs = others.map((other) => Math.log(parameterOf(other, name)));
      const between = sampleDeviation(logs) * ((logs.length - 1) / Math.sqrt(logs.length));
      return [name, Math.max(fit.spread[name]!, Number.isFinite(between) ? between : 0)];
    }),
  );
}

/** Reasons to doubt a fit. */
function warningsOf(folds: readonly BenchFold[], isConverged: boolean): string[] {
  const bySlowness = folds.toSorted((a, b) => a.slowness - b.slowness);
  const [fastest, slowest] = [bySlowness[0], bySlowness.at(-1)!];
  const drift = slowest.slowness / fastest.slowness;
  const [own, leftOut] = [folds.map(({ errors }) => errors), folds.map((fold) => fold.leftOut)].map((all) =>
    mean(all.map(({ e2e }) => Math.abs(e2e))),
  );
  return sentencesIf([
    [
      !isConverged,
      'Searches from different starts ended at different profiles: the loads do not settle the fit. Add loads of other rates and lengths.',
    ],
    [
      drift > MOST_DRIFT,
      `The loads contradict each other: the server was ${Math.round(100 * (drift - 1))} % slower in ${slowest.name} than in ${fastest.name}. The profile lies between. Measure all loads in one session, on a machine that does nothing else.`,
    ],
    [
      own > LARGE_ERROR && own > CLEARLY_WORSE * leftOut,
      `The fit on all loads (${own.toFixed(1)} %) is worse than fits with one left out (${leftOut.toFixed(1)} %): one law does not describe these loads.`,
    ],
  ]);
}

/** The share of the overhead that varies with which the p99 of TTFT comes nearest. */
function jitterOf(loads: readonly FittedLoad[], candidate: Candidate, options: BenchOptions): number {
  const errors = JITTERS.map((jitter) =>
    loads.reduce((sum, load) => {
      const { ttftMs } = simulatedTimes(load, candidate, options, { jitter });
      return sum + Math.abs(Math.log(summarize(ttftMs).p99 / summarize(load.measured.ttftMs).p99));
    }, 0),
  );
  return bestJitter(errors, WORTH_JITTER * loads.length);
}

/** Requests that are left out at a time: each load, or stretches of the only one. */
function foldsOf(loads: readonly FittedLoad[]): Fold[] {
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
  const ofAll = (what: keyof BenchErrors) =>
    members.flatMap((set, l) => [...set].map((i) => times[l]![`${what}Ms`][i]));
  return eachTime((what) => mean(ofAll(what).filter(Number.isFinite)));
}

function errorsOf(simulatedMs: BenchErrors, measuredMs: BenchErrors): BenchErrors {
  return eachTime((what) => 100 * (simulatedMs[what] / measuredMs[what] - 1));
}

function eachTime(of: (what: keyof BenchErrors) => number): BenchErrors {
  return { ttft: of('ttft'), tpot: of('tpot'), e2e: of('e2e') };
}
