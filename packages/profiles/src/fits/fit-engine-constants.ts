import { Matrix, solve } from 'ml-matrix';
import { type EngineConstants, VLLM_V1 } from '../data/engine-constants.ts';
import { bestJitter, JITTERS, leastSquares, normalEquations, robust } from './least-squares.ts';
import { measuredLatencies, type ServedLoad, simulateServedLoad } from './served-load.ts';

/**
 * Prior of each constant: a value, and its relative spread. Weight reads: the share of the bandwidth that
 * multiplications of 16 tokens reach in public kernel tables (aiconfigurator-core 0.12). H100: 21 us a token and 39.3 ns
 * a token of KV for Llama-3.1-8B (BLIS). The others are choices.
 */
const PRIORS = {
  baseUs: [1000, 0.7],
  perLayerUs: [20, 1],
  parallelPerLayerUs: [20, 1],
  mixturePerLayerUs: [20, 1],
  qkNormPerLayerUs: [15, 1],
  prefillPerLayerUs: [38, 0.7],
  perDecodeSequenceUs: [10, 1],
  'efficiencies.a100.weightRead': [0.68, 0.1],
  'efficiencies.a100.kvRead': [0.85, 0.2],
  'efficiencies.a100.compute': [0.68, 0.1],
  'efficiencies.l40s.weightRead': [0.765, 0.1],
  'efficiencies.l40s.kvRead': [0.85, 0.2],
  'efficiencies.l40s.compute': [0.68, 0.2],
  'efficiencies.h100.weightRead': [0.93, 0.1],
  'efficiencies.h100.kvRead': [0.95, 0.07],
  'efficiencies.h100.compute': [0.68, 0.1],
  expertReadFactor: [0.9, 0.2],
  allReduceEfficiency: [0.7, 0.2],
  requestOverheadMs: [5, 0.7],
} as const satisfies Record<string, readonly [value: number, spread: number]>;

/** Path of a constant that is fitted to means. */
type FittedPath = keyof typeof PRIORS;
const PATHS = Object.keys(PRIORS) as FittedPath[];

/** Errors that a load well described has, relative. */
const E2E_SPREAD = 0.02;
const TTFT_SPREAD = 0.05;
/** Step of the finite differences, in logarithms: well above what one request in another iteration changes. */
const DIFFERENCE = 0.01;
/** Share of each load that a fit simulates. */
const SHARE = 0.2;

/** Values of the constants that a fit changes, by path. */
export function fittedConstants(constants: EngineConstants): Record<string, number> {
  return {
    ...Object.fromEntries(PATHS.map((path) => [path, valueAt(constants, path)])),
    requestOverheadJitter: constants.requestOverheadJitter,
  };
}

/**
 * Constants fitted to served loads: all but one to their mean end-to-end latency and mean time to first token, then
 * the jitter, which leaves means alone, to the p99 of the latter. Both are robust, since lengths and arrivals of loads
 * are only known as means. Takes two minutes for fifty loads of a thousand seconds.
 */
export function fitEngineConstants(loads: readonly ServedLoad[]): EngineConstants {
  const { parameters } = leastSquares(
    (logs) => [...loads.flatMap((load) => meanResiduals(load, constantsAt(logs))), ...priorResiduals(logs)],
    PATHS.map((path) => Math.log(PRIORS[path][0])),
    { difference: DIFFERENCE, tolerance: 1e-4 },
  );
  const constants = constantsAt(parameters);
  const errors = loads.map((load) => p99Errors(load, constants));
  return { ...constants, requestOverheadJitter: jitterOf(errors) };
}

/**
 * For each load, constants that have seen no load of its model on its GPU: one Gauss-Newton step from the constants
 * fitted to all, without the residuals of those loads, and the jitter that suits the others.
 */
export function leftOutConstants(
  loads: readonly ServedLoad[],
  fitted: EngineConstants = VLLM_V1,
): EngineConstants[] {
  const logs = PATHS.map((path) => Math.log(valueAt(fitted, path)));
  const residuals = loads.map((load) => meanResiduals(load, constantsAt(logs)));
  const moved = logs.map((log, i) => {
    const constants = constantsAt(logs.with(i, log + DIFFERENCE));
    return loads.map((load) => meanResiduals(load, constants));
  });
  const jitterErrors = loads.map((load) => p99Errors(load, fitted));
  const priors = priorResiduals(logs);
  const groupOf = ({ model, gpu }: ServedLoad) => `${model} on ${gpu}`;
  const without = (group: string): EngineConstants => {
    const others = <T>(byLoad: readonly T[]) => byLoad.filter((_, l) => groupOf(loads[l]) !== group);
    const values = others(residuals).flat();
    const columns = moved.map((column) => others(column).flat());
    const slopes = new Matrix([
      ...values.map((value, row) => columns.map((column) => (column[row] - value) / DIFFERENCE)),
      ...Matrix.diag(PATHS.map((path) => 1 / PRIORS[path][1])).to2DArray(),
    ]);
    const { curvature, gradient } = normalEquations(slopes, [...values, ...priors]);
    const step = solve(curvature, gradient);
    return {
      ...constantsAt(logs.map((log, i) => log - step.get(i, 0))),
      requestOverheadJitter: jitterOf(others(jitterErrors)),
    };
  };
  const byGroup = new Map<string, EngineConstants>();
  return loads.map((load) => {
    const group = groupOf(load);
    const constants = byGroup.get(group) ?? without(group);
    byGroup.set(group, constants);
    return constants;
  });
}

function meanResiduals(load: ServedLoad, constants: EngineConstants): number[] {
  const simulated = simulateServedLoad(load, constants, SHARE);
  const measured = measuredLatencies(load);
  return [
    robust(Math.log(simulated.e2eMean / measured.e2eMean) / E2E_SPREAD),
    robust(Math.log(simulated.ttftMean / measured.ttftMean) / TTFT_SPREAD),
  ];
}

/** Errors of the p99 of the time to first token, in logarithms and without their signs, for each jitter tried. */
function p99Errors(load: ServedLoad, constants: EngineConstants): number[] {
  return JITTERS.map((requestOverheadJitter) => {
    const tried = { ...constants, requestOverheadJitter };
    return Math.abs(Math.log(simulateServedLoad(load, tried, SHARE).ttftP99 / load.ttft_p99_ms));
  });
}

/** The jitter with the least sum of errors over loads. */
function jitterOf(errors: readonly (readonly number[])[]): number {
  return bestJitter(JITTERS.map((_, step) => errors.reduce((sum, ofLoad) => sum + ofLoad[step], 0)));
}

function priorResiduals(logs: readonly number[]): number[] {
  return logs.map((log, i) => {
    const [value, spread] = PRIORS[PATHS[i]];
    return (log - Math.log(value)) / spread;
  });
}

function constantsAt(logs: readonly number[]): EngineConstants {
  const constants = structuredClone({ ...VLLM_V1, requestOverheadJitter: 0 });
  for (const [i, path] of PATHS.entries())
    holderOf(constants, path)[path.split('.').at(-1)!] = Math.exp(logs[i]);
  return constants;
}

function valueAt(constants: EngineConstants, path: FittedPath): number {
  return holderOf(constants, path)[path.split('.').at(-1)!];
}

/** The object that has the last part of a path as its property. */
function holderOf(constants: EngineConstants, path: FittedPath): Record<string, number> {
  const keys = path.split('.').slice(0, -1);
  return keys.reduce<unknown>((object, key) => (object as Record<string, unknown>)[key], constants) as Record<
    string,
    number
  >;
}
