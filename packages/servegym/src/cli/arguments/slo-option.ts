import { parseSlo, type SloTerm } from '@servegym/operators';
import { InputError } from '../input-error.ts';

/** `--slo`, with its default. */
export function sloOption(bounds: string) {
  return {
    value: '<bounds>',
    parse: parseSlo,
    default: parseSlo(bounds),
    defaultText: bounds,
    help: 'percentiles or means of ttft, tpot and e2e',
  } as const;
}

/** @throws InputError when a bound is of a priority class */
export function refuseClassBounds(slo: readonly SloTerm[], reason: string): void {
  if (slo.some(({ priorityClass }) => priorityClass !== undefined))
    throw new InputError(`--slo: expected bounds of all requests, as ${reason} no priority classes`);
}
