import { parseSlo, type SloTerm } from '@servegym/operators';
import { Option } from 'commander';
import { InputError } from '../input-error.ts';

/** `--slo`, with its default. */
export function sloOption(bounds: string, more = ''): Option {
  return new Option('--slo <bounds>', `ttft, tpot or e2e, each with a percentile or the mean${more}`)
    .default(parseSlo(bounds), bounds)
    .argParser(parseSlo);
}

/** @throws InputError when a bound is of a priority class */
export function refuseClassBounds(slo: readonly SloTerm[], reason: string): void {
  if (slo.some(({ priorityClass }) => priorityClass !== undefined))
    throw new InputError(`--slo: expected bounds of all requests, as ${reason} no priority classes`);
}
