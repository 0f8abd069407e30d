import type { EngineProfile, IterationLaw } from '@servegym/simulator';
import { mean } from '@servegym/simulator/statistics';
import { inverse } from 'ml-matrix';
import { ProfileError } from '../schema/read-json.ts';
import { leastSquares } from './least-squares.ts';

/** The coefficients of a law. `experts` and `manySequences` stand for what they take. */
export type LawCoefficient = Exclude<keyof IterationLaw, 'launchBound' | 'tokenFactors' | 'sequenceFactors'>;

/** What a law is fitted to: each has a column of spreads. */
const FITS = ['loads', 'batches', 'weights', 'weights and KV'] as const;
/**
 * Distance of each coefficient from the law that a fit starts from that is likely, relative.
 * - Of served loads, around an estimate or an older profile. One of 1 and more allows nothing at all.
 * - Of static batches, around the roofline.
 * - Of quantized weights, around bytes and arithmetic alone, where only they changed, and where the precision of the KV
 *   cache changed with them.
 */
const SPREADS: Readonly<Record<LawCoefficient | 'requestOverheadMs', readonly number[]>> = {
  baseUs: [0.7, 0.7, 0.05, 0.05],
  weightReadUs: [0.15, 0.15, 0.2, 0.2],
  experts: [0.3, 0.3, 0.2, 0.2],
  perTokenUs: [0.3, 0.2, 0.2, 0.2],
  perDecodeSequenceUs: [4, 1, 0.5, 0.5],
  perContextTokenNs: [0.4, 0.4, 0.05, 0.5],
  perPrefillAttentionNs: [0.4, 0.4, 0.05, 0.05],
  manySequences: [0.7, 0.7, 0.05, 0.5],
  perContextTokenBesidePrefillNs: [0.4, 0.4, 0.05, 0.5],
  prefillLaunchUs: [1, 1, 0.05, 0.05],
  requestOverheadMs: [1],
};

/** In the order in which fits keep them. */
export const LAW_COEFFICIENTS = (Object.keys(SPREADS) as (keyof Spreads)[]).filter(
  (name) => name !== 'requestOverheadMs',
);

/** The value of a coefficient; `undefined` for one that the law does without. */
export function coefficientOf(law: IterationLaw, name: LawCoefficient): number | undefined {
  if (name === 'experts') return law.experts?.readUs;
  return name === 'manySequences' ? law.manySequences?.perContextTokenNs : law[name];
}

/** The coefficients that a law has. */
export function coefficientsOf(law: IterationLaw): LawCoefficient[] {
  return LAW_COEFFICIENTS.filter((name) => coefficientOf(law, name) !== undefined);
}

/** The fields of a law in the order of written profiles. */
const FIELDS = [
  'baseUs',
  'launchBound',
  'weightReadUs',
  'experts',
  'perTokenUs',
  'tokenFactors',
  'perDecodeSequenceUs',
  'perContextTokenNs',
  'manySequences',
  'sequenceFactors',
  'perContextTokenBesidePrefillNs',
  'prefillLaunchUs',
  'perPrefillAttentionNs',
] as const satisfies readonly (keyof IterationLaw)[];

/** The law with each of its coefficients changed, and its factors kept. */
export function mapLaw(
  law: IterationLaw,
  change: (value: number, coefficient: LawCoefficient) => number,
): IterationLaw {
  const changed: Partial<Record<keyof IterationLaw, unknown>> = {};
  for (const field of FIELDS) {
    if (law[field] === undefined) continue;
    if (field === 'launchBound' || field === 'tokenFactors' || field === 'sequenceFactors') {
      changed[field] = law[field];
      continue;
    }
    const value = change(coefficientOf(law, field)!, field);
    if (field === 'experts') changed.experts = { ...law.experts, readUs: value };
    else if (field === 'manySequences')
      changed.manySequences = { ...law.manySequences, perContextTokenNs: value };
    else changed[field] = value;
  }
  return changed as unknown as IterationLaw;
}

/** The law with coefficients of five digits, as profiles keep them. */
export function roundLaw(law: IterationLaw): IterationLaw {
  return mapLaw(law, (value) => Number(value.toPrecision(5)));
}

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

type Spreads = Readonly<Record<keyof typeof SPREADS, number>>;

export function likelySpreads(of: (typeof FITS)[number]): Spreads {
  const column = FITS.indexOf(of);
  return Object.fromEntries(Object.entries(SPREADS).map(([name, all]) => [name, all[column]])) as Spreads;
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
  const covariance = inverse(curvature);
  const determined = names.map((name, i) => {
    const remaining = Math.sqrt(covariance.get(i, i)) / spread[i];
    return [name, Math.max(0, 1 - remaining)] as const;
  });
  return { law: lawAt(parameters), determined: Object.fromEntries(determined) };
}

/**
 * A law fitted to all measurements, and what it predicts of each beside a fit that has not seen those of the same group.
 *
 * @param finish What becomes of the law before it predicts. Default: nothing.
 */
export function fitLeavingOut<Measured extends Observation>(
  observations: readonly Measured[],
  prior: LawPrior,
  groupOf: (observation: Measured, index: number) => unknown,
  finish = (law: IterationLaw) => law,
) {
  const fit = fitLaw(observations, prior);
  const law = finish(fit.law);
  const groups = observations.map(groupOf);
  const lawsOfOthers = new Map<unknown, IterationLaw>();
  for (const group of new Set(groups)) {
    const others = observations.filter((_, i) => groups[i] !== group);
    lawsOfOthers.set(group, fitLaw(others, prior, law).law);
  }
  return {
    law,
    determined: fit.determined,
    rows: observations.map((observation, i) => {
      const { measuredS, predictS } = observation;
      const [predictedS, heldOutS] = [law, lawsOfOthers.get(groups[i])!].map(predictS);
      const [error, heldOut] = [predictedS, heldOutS].map((seconds) => errorPercent(seconds, measuredS));
      return { observation, predictedS, heldOutS, error, heldOut };
    }),
  };
}

/** Relative error, percent, without its sign. */
export function errorPercent(predicted: number, measured: number): number {
  return 100 * Math.abs(predicted / measured - 1);
}

/** Errors of a fit as profiles keep them, percent: on what it was fitted to, and by fits that left each row out. */
export function fitErrors(
  command: string,
  errors: readonly { readonly error: number; readonly heldOut: number }[],
  rows = errors.length,
): NonNullable<EngineProfile['fit']> {
  const [own, heldOut] = [errors.map(({ error }) => error), errors.map((each) => each.heldOut)];
  return {
    rows,
    meanErrorPercent: hundredths(mean(own)),
    worstErrorPercent: hundredths(Math.max(...own)),
    heldOutMeanErrorPercent: hundredths(mean(heldOut)),
    heldOutWorstErrorPercent: hundredths(Math.max(...heldOut)),
    command,
  };
}

/** @throws {ProfileError} when there are fewer measurements than a fit needs; `what`: which it takes. */
export function checkRows(rows: number, least: number, what: string): void {
  if (rows >= least) return;
  throw new ProfileError('CALIBRATION_ROWS', '', `at least ${least} ${what}`, `${rows}`);
}

export function hundredths(value: number): number {
  return Math.round(value * 100) / 100;
}
