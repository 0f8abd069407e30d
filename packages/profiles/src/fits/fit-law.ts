import type { IterationLaw } from '@servegym/simulator';
import { inverse, type Matrix } from 'ml-matrix';
import { coefficientOf, coefficientsOf, type LawCoefficient, mapLaw } from './law-coefficients.ts';
import { leastSquares } from './least-squares.ts';

/** Spread that repeated measurements of one latency have, relative. */
const MEASUREMENT_SPREAD = 0.015;

/** One measured latency and the simulation of it. */
export interface Observation {
  readonly measuredS: number;
  /** Weight, in measurements. Default 1. */
  readonly weight?: number;
  /** Simulated latency under a law, s. Positive. */
  readonly predictS: (law: IterationLaw) => number;
}

/** Prior of a law: a value and a relative spread for each of its coefficients. */
export interface LawPrior {
  readonly law: IterationLaw;
  readonly spread: Readonly<Record<LawCoefficient, number>>;
}

export interface LawFit {
  readonly law: IterationLaw;
  /**
   * Information of the measurements about each coefficient: 1 - (spread after / spread before). Near 0 the coefficient
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
    mapLaw(prior.law, (_, name) => Math.exp(logs[names.indexOf(name)]));
  const residualsAt = (logs: readonly number[]) => {
    const law = lawAt(logs);
    return [
      ...observations.map(
        ({ measuredS, predictS, weight = 1 }) =>
          (Math.sqrt(weight) * Math.log(predictS(law) / measuredS)) / MEASUREMENT_SPREAD,
      ),
      ...logs.map((log, i) => (log - expected[i]) / spread[i]),
    ];
  };

  const { parameters, curvature } = leastSquares(
    residualsAt,
    names.map((name) => Math.log(coefficientOf(start, name)!)),
  );
  return { law: lawAt(parameters), determined: determinedShares(names, spread, curvature) };
}

/**
 * Information of measurements about each parameter of a fit: 1 - (spread after / spread before).
 * @param spread Of each parameter before any measurement.
 * @param curvature Of the fit, prior included.
 */
function determinedShares<Name extends string>(
  names: readonly Name[],
  spread: readonly number[],
  curvature: Matrix,
): Partial<Record<Name, number>> {
  const covariance = inverse(curvature);
  const shares = names.map((name, i) => {
    const remaining = Math.sqrt(covariance.get(i, i)) / spread[i];
    return [name, Math.max(0, 1 - remaining)] as const;
  });
  return Object.fromEntries(shares) as Partial<Record<Name, number>>;
}
