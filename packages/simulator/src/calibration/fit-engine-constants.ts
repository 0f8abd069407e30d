import { Matrix, solve } from 'ml-matrix';
import { summarize } from '../statistics/summary.ts';
import { type EngineConstants, VLLM_V1 } from './engine-constants.ts';
import { leastSquares } from './least-squares.ts';
import { type ServedLoad, simulateServedLoad } from './served-load.ts';

/** Where each constant may well lie: a value, and its relative spread. Those that are not here are not fitted to means. */
const PRIOR: Partial<Record<keyof EngineConstants, readonly [value: number, spread: number]>> = {
  baseUs: [1000, 0.7],
  perLayerUs: [20, 1],
  parallelPerLayerUs: [20, 1],
  perDecodeSequenceUs: [10, 1],
  weightReadEfficiency: [0.85, 0.1],
  mixtureReadEfficiency: [0.85, 0.3],
  kvReadEfficiency: [0.9, 0.2],
  computeEfficiency: [0.65, 0.1],
  allReduceEfficiency: [0.7, 0.2],
  requestOverheadMs: [5, 0.7],
  requestOverheadIterations: [0.8, 0.7],
};
const MEAN_CONSTANTS = Object.keys(PRIOR) as (keyof EngineConstants & keyof typeof PRIOR)[];
const PRIORS = MEAN_CONSTANTS.map((name) => PRIOR[name]!);
/** Steps of the jitter that are tried. */
const JITTER_STEPS = 10;

/** The constants that `fitEngineConstants` fits. */
export const FITTED_CONSTANTS: readonly (keyof EngineConstants)[] = [
  ...MEAN_CONSTANTS,
  'requestOverheadJitter',
];

/** Errors that a load well described has, relative. */
const E2E_SPREAD = 0.03;
const TTFT_SPREAD = 0.08;
/** Step of the finite differences, in logarithms: well above what one request in another iteration changes. */
const DIFFERENCE = 0.01;

/**
 * Constants fitted to served loads: all but one to their mean end-to-end latency and mean time to first token, then
 * the jitter, which leaves means alone, to the p99 of the latter. Both are robust, since the lengths behind some loads
 * are only known as means. Takes half a minute for a dozen loads of a thousand seconds.
 */
export function fitEngineConstants(loads: readonly ServedLoad[]): EngineConstants {
  const { parameters } = leastSquares(
    (logs) => [...loads.flatMap((load) => meanResiduals(load, constantsAt(logs))), ...priorResiduals(logs)],
    PRIORS.map(([value]) => Math.log(value)),
    { difference: DIFFERENCE, tolerance: 1e-6 },
  );
  const constants = constantsAt(parameters);
  const errors = loads.map((load) => p99Errors(load, constants));
  return { ...constants, requestOverheadJitter: bestJitter(errors) };
}

/**
 * For each load, constants that have not seen it: one Gauss-Newton step from the constants fitted to all, without the
 * residuals of that load, and the jitter that suits the others.
 */
export function leftOutConstants(
  loads: readonly ServedLoad[],
  fitted: EngineConstants = VLLM_V1,
): EngineConstants[] {
  const logs = MEAN_CONSTANTS.map((name) => Math.log(Number(fitted[name])));
  const residuals = loads.map((load) => meanResiduals(load, constantsAt(logs)));
  const moved = logs.map((log, i) => {
    const constants = constantsAt(logs.with(i, log + DIFFERENCE));
    return loads.map((load) => meanResiduals(load, constants));
  });
  const jitterErrors = loads.map((load) => p99Errors(load, fitted));
  const priors = priorResiduals(logs);
  return loads.map((_, left) => {
    const rows: number[][] = [];
    const values: number[] = [];
    for (const [l, ofLoad] of residuals.entries()) {
      if (l === left) continue;
      for (const [r, residual] of ofLoad.entries()) {
        rows.push(moved.map((column) => (column[l]![r]! - residual) / DIFFERENCE));
        values.push(residual);
      }
    }
    for (const [i, residual] of priors.entries()) {
      rows.push(logs.map((_, other) => (other === i ? 1 / PRIORS[i]![1] : 0)));
      values.push(residual);
    }
    const jacobian = new Matrix(rows);
    const transposed = jacobian.transpose();
    const step = solve(transposed.mmul(jacobian), transposed.mmul(Matrix.columnVector(values)));
    return {
      ...constantsAt(logs.map((log, i) => log - step.get(i, 0))),
      requestOverheadJitter: bestJitter(jitterErrors.filter((_, l) => l !== left)),
    };
  });
}

function meanResiduals(load: ServedLoad, constants: EngineConstants): number[] {
  const run = simulateServedLoad(load, constants);
  return [
    robust(Math.log(summarize(run.e2eMs).mean / load.e2e_mean_ms) / E2E_SPREAD),
    robust(Math.log(summarize(run.ttftMs).mean / load.ttft_mean_ms) / TTFT_SPREAD),
  ];
}

/** Errors of the p99 of the time to first token, in logarithms and without their signs, for each jitter tried. */
function p99Errors(load: ServedLoad, constants: EngineConstants): number[] {
  return Array.from({ length: JITTER_STEPS + 1 }, (_, step) => {
    const run = simulateServedLoad(load, { ...constants, requestOverheadJitter: step / JITTER_STEPS });
    return Math.abs(Math.log(summarize(run.ttftMs).p99 / load.ttft_p99_ms));
  });
}

/** The jitter with the least sum of errors over loads. */
function bestJitter(errors: readonly (readonly number[])[]): number {
  const sums = Array.from({ length: JITTER_STEPS + 1 }, (_, step) =>
    errors.reduce((sum, ofLoad) => sum + ofLoad[step]!, 0),
  );
  return sums.indexOf(Math.min(...sums)) / JITTER_STEPS;
}

function priorResiduals(logs: readonly number[]): number[] {
  return logs.map((log, i) => (log - Math.log(PRIORS[i]![0])) / PRIORS[i]![1]);
}

function constantsAt(logs: readonly number[]): EngineConstants {
  return {
    ...VLLM_V1,
    requestOverheadJitter: 0,
    ...Object.fromEntries(MEAN_CONSTANTS.map((name, i) => [name, Math.exp(logs[i]!)])),
  };
}

/** Its square grows with the residual beyond one spread, not with its square. */
function robust(residual: number): number {
  return Math.sign(residual) * Math.sqrt(2 * (Math.sqrt(1 + residual ** 2) - 1));
}
