import { Matrix, solve } from 'ml-matrix';

const MAX_STEPS = 60;
/** With more no step is long enough to matter. */
const MOST_DAMPING = 1e12;

export interface LeastSquaresOptions {
  readonly difference?: number;
  readonly slopes?: Matrix;
  readonly tolerance?: number;
  readonly damping?: number;
  readonly bounds?: { readonly lower: readonly number[]; readonly upper: readonly number[] };
}

/**
 * Parameters with the least sum of squared residuals, by Levenberg-Marquardt, and the curvature there: Jacobian transposed times
 * Jacobian. Deterministic.
 *
 * @param options.difference Step of the finite differences. Default 1e-3.
 * @param options.slopes Of the residuals by the parameters, taken to be the same everywhere. Default: measured at each step.
 * @param options.tolerance Relative gain of a step at which the search ends. Default 1e-9.
 * @param options.damping Where the damping begins: the larger, the shorter the first steps. Default 0.01.
 * @param options.bounds Of each parameter; the start lies within them. A parameter at a bound is held there while the
 *   cost falls beyond it.
 */
export function leastSquares(
  residualsAt: (parameters: readonly number[]) => readonly number[],
  start: readonly number[],
  {
    difference = 1e-3,
    slopes,
    tolerance = 1e-9,
    damping: firstDamping = 1e-2,
    bounds,
  }: LeastSquaresOptions = {},
) {
  const equationsAt = (at: readonly number[], residuals: readonly number[]) =>
    normalEquations(slopes ?? slopesAt(residualsAt, at, residuals, difference), residuals);
  let parameters = start;
  let residuals = residualsAt(parameters);
  let cost = sumOfSquares(residuals);
  let damping = firstDamping;
  let equations: ReturnType<typeof normalEquations> | undefined;
  for (let step = 0; step < MAX_STEPS; step += 1) {
    equations ??= equationsAt(parameters, residuals);
    const { curvature, gradient } = equations;
    const isHeld = parameters.map((value, i) => {
      if (bounds === undefined) return false;
      const slope = gradient.get(i, 0);
      return (value <= bounds.lower[i] && slope > 0) || (value >= bounds.upper[i] && slope < 0);
    });
    const free = [...parameters.keys()].filter((i) => !isHeld[i]);
    if (free.length === 0) break;
    const damped = curvature.selection(free, free);
    for (const [at, i] of free.entries()) damped.set(at, at, curvature.get(i, i) * (1 + damping));
    const change = solve(damped, gradient.selection(free, [0]));
    const candidate = [...parameters];
    for (const [at, i] of free.entries()) {
      const value = parameters[i] - change.get(at, 0);
      candidate[i] =
        bounds === undefined ? value : Math.min(Math.max(value, bounds.lower[i]), bounds.upper[i]);
    }
    const candidateResiduals = residualsAt(candidate);
    const candidateCost = sumOfSquares(candidateResiduals);
    if (!(candidateCost < cost)) {
      damping *= 10;
      if (damping > MOST_DAMPING) break;
      continue;
    }
    equations = undefined;
    const isSettled = cost - candidateCost < tolerance * cost;
    parameters = candidate;
    residuals = candidateResiduals;
    cost = candidateCost;
    damping /= 5;
    if (isSettled) break;
  }
  const { curvature } = equations ?? equationsAt(parameters, residuals);
  return { parameters, curvature };
}

function slopesAt(
  residualsAt: (parameters: readonly number[]) => readonly number[],
  parameters: readonly number[],
  residuals: readonly number[],
  difference: number,
): Matrix {
  const columns = parameters.map((value, i) => {
    const moved = residualsAt(parameters.with(i, value + difference));
    return moved.map((residual, row) => (residual - residuals[row]) / difference);
  });
  return new Matrix(columns).transpose();
}

/** Their solution is the step of Gauss and Newton, negated. */
export function normalEquations(slopes: Matrix, residuals: readonly number[]) {
  const transposed = slopes.transpose();
  return {
    curvature: transposed.mmul(slopes),
    gradient: transposed.mmul(Matrix.columnVector([...residuals])),
  };
}

/** Shares of a request's overhead that are tried as the part that varies. */
export const JITTERS: readonly number[] = Array.from({ length: 11 }, (_, step) => step / 10);

/** The one of `JITTERS` with the least error; 0 where that is not less by `worth`. */
export function bestJitter(errors: readonly number[], worth = 0): number {
  const least = Math.min(...errors);
  return errors[0] - least < worth ? 0 : JITTERS[errors.indexOf(least)];
}

/** Its square grows with the residual beyond one spread, not with its square. */
export function robust(residual: number): number {
  return Math.sign(residual) * Math.sqrt(2 * (Math.sqrt(1 + residual ** 2) - 1));
}

export function sumOfSquares(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value * value, 0);
}
