import { portableMath } from '../portable-math.ts';

/** P(Z <= z) for a standard normal Z. Abramowitz and Stegun 7.1.26; wrong by less than 1.5e-7. */
export function normalProbability(z: number): number {
  const x = Math.abs(z) / Math.SQRT2;
  const t = 1 / (1 + 0.3275911 * x);
  const series =
    t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  const tail = (series * portableMath.exp(-x * x)) / 2;
  return z > 0 ? 1 - tail : tail;
}

/**
 * The standard normal quantile, for probabilities inside (0, 1). Relative error below 1.15e-9 (P. J. Acklam, "An
 * algorithm for computing the inverse normal cumulative distribution function", 2003).
 */
export function inverseNormal(probability: number): number {
  const tail = 0.02425;
  if (probability < tail) return lowerTail(Math.sqrt(-2 * portableMath.log(probability)));
  if (probability > 1 - tail) return -lowerTail(Math.sqrt(-2 * portableMath.log(1 - probability)));
  const q = probability - 0.5;
  const r = q * q;
  return (q * polynomial(CENTRE_ABOVE, r)) / (polynomial(CENTRE_BELOW, r) * r + 1);
}

const CENTRE_ABOVE = [
  -3.969683028665376e1, 2.209460984245205e2, -2.759285104469687e2, 1.38357751867269e2, -3.066479806614716e1,
  2.506628277459239,
];
const CENTRE_BELOW = [
  -5.447609879822406e1, 1.615858368580409e2, -1.556989798598866e2, 6.680131188771972e1, -1.328068155288572e1,
];
const TAIL_ABOVE = [
  -7.784894002430293e-3, -3.223964580411365e-1, -2.400758277161838, -2.549732539343734, 4.374664141464968,
  2.938163982698783,
];
const TAIL_BELOW = [7.784695709041462e-3, 3.224671290700398e-1, 2.445134137142996, 3.754408661907416];

function lowerTail(q: number): number {
  return polynomial(TAIL_ABOVE, q) / (polynomial(TAIL_BELOW, q) * q + 1);
}

/** Highest power first. */
function polynomial(coefficients: readonly number[], x: number): number {
  let sum = 0;
  for (const coefficient of coefficients) sum = sum * x + coefficient;
  return sum;
}
