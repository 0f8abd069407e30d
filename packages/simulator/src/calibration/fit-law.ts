import { inverse, Matrix, solve } from 'ml-matrix';
import type { IterationLaw } from '../profiles/engine-profile.ts';
import { coefficientOf, coefficientsOf, type LawCoefficient, mapLaw } from './law-coefficients.ts';

/** Spread that repeated measurements of one latency have, relative. */
const MEASUREMENT_SPREAD = 0.015;
const MAX_STEPS = 40;
/** Step of the finite differences, in the logarithm of a coefficient: far above the engine's clock tick. */
const DIFFERENCE = 1e-3;

/** One measured latency and the simulation of it. */
export interface Observation {
  readonly measuredS: number;
  /** Simulated latency under a law, s. Positive. */
  readonly predictS: (law: IterationLaw) => number;
}

/** What is known of a law before any measurement: a value and a relative spread for each coefficient it has. */
export interface LawPrior {
  readonly law: IterationLaw;
  readonly spread: Readonly<Record<LawCoefficient, number>>;
}

export interface LawFit {
  readonly law: IterationLaw;
  /**
   * How much the measurements say about each coefficient: 1 - (spread after / spread before). Near 0 the coefficient
   * is the prior's, near 1 the measurements'.
   */
  readonly determined: Readonly<Partial<Record<LawCoefficient, number>>>;
}

/**
 * Fits a law to measured latencies: the coefficients, all positive, with the least sum of squared relative errors,
 * each counted in its own spread, over the measurements and the prior. Where the measurements leave a coefficient
 * open the prior decides, so that the law stays physical outside of them.
 *
 * Levenberg-Marquardt on the logarithms of the coefficients. Deterministic.
 *
 * @param start Where the search begins; a good guess saves time and changes nothing else. Default: the prior.
 */
export function fitLaw(
  observations: readonly Observation[],
  prior: LawPrior,
  start: IterationLaw = prior.law,
): LawFit {
  const names = coefficientsOf(prior.law);
  const expected = names.map((name) => Math.log(coefficientOf(prior.law, name)!));
  const spread = names.map((name) => prior.spread[name]);
  const lawAt = (logs: readonly number[]) =>
    mapLaw(prior.law, (_, name) => Math.exp(logs[names.indexOf(name)]!));
  const residualsAt = (logs: readonly number[]): number[] => {
    const law = lawAt(logs);
    return [
      ...observations.map(
        ({ measuredS, predictS }) => Math.log(predictS(law) / measuredS) / MEASUREMENT_SPREAD,
      ),
      ...logs.map((log, i) => (log - expected[i]!) / spread[i]!),
    ];
  };

  let logs = names.map((name) => Math.log(coefficientOf(start, name)!));
  let residuals = residualsAt(logs);
  let cost = sumOfSquares(residuals);
  let damping = 1e-2;
  for (let step = 0; step < MAX_STEPS; step += 1) {
    const { curvature, gradient } = normalEquations(residualsAt, logs, residuals);
    const damped = curvature.clone();
    for (let i = 0; i < damped.rows; i += 1) damped.set(i, i, curvature.get(i, i) * (1 + damping));
    const change = solve(damped, gradient);
    const candidate = logs.map((log, i) => log - change.get(i, 0));
    const candidateResiduals = residualsAt(candidate);
    const candidateCost = sumOfSquares(candidateResiduals);
    if (candidateCost >= cost) {
      damping *= 10;
      continue;
    }
    const isSettled = cost - candidateCost < 1e-9 * cost;
    logs = candidate;
    residuals = candidateResiduals;
    cost = candidateCost;
    damping /= 5;
    if (isSettled) break;
  }

  const covariance = inverse(normalEquations(residualsAt, logs, residuals).curvature);
  const determined = names.map((name, i) => {
    const remaining = Math.sqrt(covariance.get(i, i)) / spread[i]!;
    return [name, Math.max(0, 1 - remaining)] as const;
  });
  return { law: lawAt(logs), determined: Object.fromEntries(determined) };
}

function normalEquations(
  residualsAt: (logs: readonly number[]) => number[],
  logs: readonly number[],
  residuals: readonly number[],
): { curvature: Matrix; gradient: Matrix } {
  const columns = logs.map((log, i) => {
    const moved = residualsAt(logs.with(i, log + DIFFERENCE));
    return moved.map((value, row) => (value - residuals[row]!) / DIFFERENCE);
  });
  const jacobian = new Matrix(columns).transpose();
  const transposed = jacobian.transpose();
  return {
    curvature: transposed.mmul(jacobian),
    gradient: transposed.mmul(Matrix.columnVector([...residuals])),
  };
}

function sumOfSquares(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value * value, 0);
}
