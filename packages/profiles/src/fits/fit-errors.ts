import type { EngineProfile } from '@servegym/simulator';
import { mean } from '@servegym/simulator/statistics';

/** Relative error, percent, without its sign. */
export function errorPercent(predicted: number, measured: number): number {
  return 100 * Math.abs(predicted / measured - 1);
}

/** Errors of a fit as profiles keep them: on what it was fitted to, and by fits that left each row out. */
export function fitErrors(
  command: string,
  rows: number,
  errors: readonly number[],
  heldOut: readonly number[],
): NonNullable<EngineProfile['fit']> {
  return {
    rows,
    meanErrorPercent: hundredths(mean(errors)),
    worstErrorPercent: hundredths(Math.max(...errors)),
    heldOutMeanErrorPercent: hundredths(mean(heldOut)),
    heldOutWorstErrorPercent: hundredths(Math.max(...heldOut)),
    command,
  };
}

export function hundredths(value: number): number {
  return Math.round(value * 100) / 100;
}
